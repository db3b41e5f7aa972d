// How a text is read: normal form, windows, closed stretches and the edges of entities, as cige.text and cige.tagging
// have them. All offsets are code points. What is a matter of tables and patterns comes from the Python sources:
// build.py writes it to rules.json.

export class TextRules {
  constructor(json) {
    this.json = json;
    const own = new Map(json.width), all = new Map(json.width);
    for (const [from, to] of json.simplified) all.set(from, to);
    this.fold = folder(own);
    this.normalize = folder(all);
    this.foldMarks = folder(new Map(json.marks));
    this.isSpace = membership(json.space);
    this.isSpacer = membership(json.spacer);
    this.isAlphabetic = membership(json.alphabetic);
    this.isOutsideNames = membership(json.outside);
    this.closed = new RegExp(json.closed.join("|"), "gsu");
    this.sign = new RegExp(json.sign, "u");
    this.cuts = json.cuts.map((cut) => ({ ...cut, end: new RegExp(cut.end, "gu") }));
    this.quoted = new RegExp(json.quoted, "gu");
    this.abbreviation = new RegExp(json.abbreviation, "gu");
    this.closerOf = new Map(Object.entries(json.closer_of).map(([a, b]) => [code(a), code(b)]));
    this.openerOf = new Map([...this.closerOf].map(([a, b]) => [b, a]));
    this.halfWidth = folder(new Map(json.half_width));
    for (const name of ["either", "kept_last", "line_breaks", "commas", "invisible"]) this[name] = new Set(codesOf(json[name]));
    this.comma = code(json.read_space_as);
    this.apart = code(json.set_apart_by);
    this.halfComma = new RegExp(json.half_comma, "gu");
    this.sentenceMark = new RegExp(json.sentence_mark, "u");
  }

  // The runs of whitespace, [start, end) each.
  *#runs(codes) {
    for (let start = 0; start < codes.length; start++) {
      if (!this.isSpace(codes[start])) continue;
      let end = start + 1;
      while (end < codes.length && this.isSpace(codes[end])) end++;
      yield [start, end];
      start = end;
    }
  }

  #cells(codes) {
    const cells = [];
    let start = 0;
    for (const [from, to] of this.#runs(codes)) {
      const run = codes.subarray(from, to);
      if (to - from === 1 && this.isSpacer(run[0])) continue;
      const breaks = run.some((c) => this.line_breaks.has(c));
      if (!breaks && from > 0 && this.commas.has(codes[from - 1])) continue;
      cells.push([start, to]);
      start = to;
    }
    if (start < codes.length) cells.push([start, codes.length]);
    return cells;
  }

  // The windows worth reading: { start, end, coreStart, coreEnd, isShortCell }, for a model with these facts.
  windows(codes, facts) {
    const { whole, context } = this.json, windows = [];
    for (const [cellStart, cellEnd] of this.#cells(codes)) {
      if (cellEnd - cellStart <= whole) {
        windows.push({ start: cellStart, end: cellEnd, coreStart: cellStart, coreEnd: cellEnd });
        continue;
      }
      for (let start = cellStart, before = 0; start < cellEnd; ) {
        const [end, share] = this.#coreEnd(codes, start, cellEnd), after = Math.floor(context * share);
        const first = this.#edge(codes, Math.max(cellStart, start - before), cellStart, -1);
        const last = this.#edge(codes, Math.min(cellEnd, end + after), cellEnd, 1);
        windows.push({ start: first, end: last, coreStart: start, coreEnd: end });
        start = end, before = Math.floor(after / 2);
      }
    }
    const read = windows.filter((w) => !codes.subarray(w.coreStart, w.coreEnd).every(this.isSpace));
    return this.#tableCells(codes, read, facts.set_apart ?? 0);
  }

  // As table_cells of cige.text.windows.
  #tableCells(codes, windows, nShort) {
    const marked = [];
    let line = [];
    for (const window of windows) {
      let end = window.coreEnd;
      while (end > window.start && this.isSpace(codes[end - 1])) end--;
      line.push({ window, isShort: window.coreStart === window.start && end - window.start <= nShort });
      if (window !== windows.at(-1) && !codes.subarray(end, window.coreEnd).some((c) => this.line_breaks.has(c))) continue;
      const isRow = line.length > 1 && 2 * line.filter((cell) => cell.isShort).length > line.length;
      for (const { window: own, isShort } of line) marked.push({ ...own, isShortCell: isRow && isShort });
      line = [];
    }
    return marked;
  }

  // The end of the core that begins at `start`, and the share of the context to read beyond it.
  #coreEnd(codes, start, cellEnd) {
    const furthest = start + this.json.core;
    if (furthest >= cellEnd) return [cellEnd, 0];
    const quoted = matches(this.quoted, codes.subarray(start, Math.min(cellEnd, furthest + this.json.max_quoted + 1)));
    const isWithin = (place) => quoted.some(([first, last]) => start + first < place && place < start + last);
    for (const cut of this.cuts) {
      const from = start + Math.floor(this.json.core * cut.at_least);
      // A character further, since what stands behind a mark may tell that nothing ends there.
      for (const [, b] of matches(cut.end, codes.subarray(from, furthest + 1)))
        if (from + b <= furthest && !isWithin(from + b)) return [from + b, cut.context_share];
    }
    return [furthest, 1];
  }

  // As _edge of cige.text.windows.
  #edge(codes, place, limit, step) {
    const furthest = place + step * Math.min(this.json.max_word, Math.abs(limit - place));
    let edge = place;
    while (edge !== furthest && edge > 0 && edge < codes.length && isInWord(codes[edge - 1]) && isInWord(codes[edge]))
      edge += step;
    return edge;
  }

  // The stretches of a text that no entity overlaps; sorted, disjoint.
  closedStretches(codes) {
    const read = this.fold(codes), found = this.sign.test(stringOf(read)) ? matches(this.closed, read) : [];
    for (const [start, end] of this.#runs(codes)) {
      const isInLatin = [start - 1, start + 1].some((k) => k >= 0 && k < codes.length && this.isAlphabetic(codes[k]));
      if (end - start > 1 || !this.isSpacer(codes[start]) || !isInLatin) found.push([start, end]);
    }
    found.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const united = [];
    for (const [start, end] of found) {
      const last = united.at(-1);
      if (last && start <= last[1]) last[1] = Math.max(end, last[1]);
      else united.push([start, end]);
    }
    return united;
  }

  // What is read in a window: normalised codes, and which of them are in a closed stretch (or null).
  read(codes, window, closed) {
    let { start, end } = window;
    while (end > start && this.isSpace(codes[end - 1])) end--;
    const read = codes.slice(start, end);
    let isClosed = null;
    for (let place = firstEndingAfter(closed, start); place < closed.length && closed[place][0] < end; place++) {
      const [a, b] = closed[place];
      isClosed ??= new Uint8Array(read.length);
      for (let k = Math.max(a, start) - start; k < Math.min(b, end) - start; k++) {
        isClosed[k] = 1;
        if (this.isSpace(read[k])) read[k] = this.comma;
      }
    }
    return { codes: this.normalize(read), isClosed };
  }

  // What is read for a model with these facts, as read_window of cige.tagging.windows: its half-width commas become
  // full-width ones, and a short cell of a table is set apart. Offsets of `words` and of the window move with the codes.
  asModelReads({ codes, isClosed }, window, words, facts) {
    const wide = facts.wide_commas ? codes.slice() : codes;
    if (facts.wide_commas) for (const [place] of matches(this.halfComma, codes)) wide[place] = code("，");
    if (!window.isShortCell || this.sentenceMark.test(stringOf(codes)))
      return { window, codes: wide, isClosed, words };
    const between = Uint32Array.from([this.apart, ...wide, this.apart]);
    const closed = Uint8Array.from([1, ...(isClosed ?? new Uint8Array(codes.length)), 1]);
    const moved = words.map(([start, end, ...more]) => [start + 1, end + 1, ...more]);
    return { window: { ...window, start: window.start - 1 }, codes: between, isClosed: closed, words: moved };
  }

  // [start, end) without the whitespace, punctuation and invisible characters at its edges, or null.
  trimmed(codes, start, end) {
    while (start < end) {
      if (!this.#mayBegin(codes, start, end)) start++;
      else if (!this.#mayEnd(codes, start, end)) end--;
      else return [start, end];
    }
    return null;
  }

  #mayBegin(codes, start, end) {
    const own = codes[start];
    if (!this.isOutsideNames(own)) return true;
    if (this.closerOf.has(own)) return this.#hasPartner(codes.subarray(start, end), this.closerOf.get(own));
    return this.either.has(own) && codes.subarray(start + 1, end).includes(own);
  }

  #mayEnd(codes, start, end) {
    const own = codes[end - 1];
    if (!this.isOutsideNames(own) || this.kept_last.has(own)) return true;
    if (this.openerOf.has(own)) return this.#hasPartner(codes.slice(start, end).reverse(), this.openerOf.get(own));
    if (this.either.has(own)) return codes.subarray(start, end - 1).includes(own);
    if (own === code("*")) return start === 0 || codes[start - 1] !== code("*");
    if (own !== code(".") && own !== code("．")) return false;
    const from = Math.max(start, end - 8), first = Math.max(0, from - 1); // what stands before it is looked at too
    return matches(this.abbreviation, codes.subarray(first, end), from - first).length > 0;
  }

  // Whether the counterpart `other` of the mark that comes first is behind it, in either width.
  #hasPartner(codes, other) {
    const [own, ...more] = this.halfWidth(codes), [counterpart] = this.halfWidth(Uint32Array.of(other));
    let depth = 1;
    return more.some((c) => (depth += (c === own) - (c === counterpart)) === 0);
  }

  // As tagging/edges.py: edges that split a Latin word, or leave out the bracket whose counterpart is inside, are moved
  // outwards; of spans that overlap then, the more probable ones stay. A span that would reach into what is closed, or
  // become too long, stays as it is.
  withWholeEdges(codes, spans, isClosed = null, maxLengths = {}) {
    let isMoved = false;
    const moved = spans.map((span) => {
      const { start, end } = this.#wholeEdges(codes, span);
      if (start === span.start && end === span.end) return span;
      if (end - start > (maxLengths?.[span.label] ?? Infinity) || this.#isEntered(isClosed, span, start, end)) return span;
      isMoved = true;
      return { ...span, start, end };
    });
    if (!isMoved) return spans;
    const kept = [];
    for (const span of moved.sort((a, b) => b.score - a.score))
      if (kept.every((other) => span.end <= other.start || other.end <= span.start)) kept.push(span);
    return kept.sort((a, b) => a.start - b.start);
  }

  // Whether a span that grows to [start, end) reaches into what is closed.
  #isEntered(isClosed, span, start, end) {
    return isClosed && (isClosed.subarray(start, span.start).includes(1) || isClosed.subarray(span.end, end).includes(1));
  }

  #wholeEdges(codes, { start, end }) {
    while (splitsWord(codes, start)) start--;
    while (splitsWord(codes, end)) end++;
    for (let opener; end < codes.length && (opener = this.openerOf.get(codes[end])); end++)
      if (!this.#hasPartner(codes.slice(start, end + 1).reverse(), opener)) break;
    for (let closer; start > 0 && (closer = this.closerOf.get(codes[start - 1])); start--)
      if (!this.#hasPartner(codes.subarray(start - 1, end), closer)) break;
    return { start, end };
  }
}

function splitsWord(codes, place) {
  if (place <= 0 || place >= codes.length) return false;
  const before = codes[place - 1], after = codes[place];
  return isLatin(before) && isLatin(after) && !(before >= code("a") && after <= code("Z"));
}

function isLatin(own) {
  return (own >= code("a") && own <= code("z")) || (own >= code("A") && own <= code("Z"));
}

export function code(char) {
  return char.codePointAt(0);
}

// Whether it is a letter or digit of ASCII.
function isInWord(own) {
  return (own >= 48 && own <= 57) || (own >= 65 && own <= 90) || (own >= 97 && own <= 122);
}

// The code points of a string; a lone surrogate is one.
export function codesOf(string) {
  const codes = new Uint32Array(string.length);
  let n = 0;
  for (let k = 0; k < string.length; k++, n++) {
    codes[n] = string.codePointAt(k);
    if (codes[n] > 0xffff) k++;
  }
  return codes.slice(0, n);
}

export function stringOf(codes) {
  const parts = [];
  for (let k = 0; k < codes.length; k += 4096) parts.push(String.fromCodePoint(...codes.subarray(k, k + 4096)));
  return parts.join("");
}

// [start, end) in code points of every match of a global pattern, from code point `first` on.
function matches(pattern, codes, first = 0) {
  const string = stringOf(codes), found = [];
  let code = 0, unit = 0; // how far code points have been counted
  const codeAt = (wanted) => {
    for (; unit < wanted; code++) unit += codes[code] > 0xffff ? 2 : 1;
    return code;
  };
  let skipped = 0;
  for (let k = 0; k < first; k++) skipped += codes[k] > 0xffff ? 2 : 1;
  pattern.lastIndex = skipped;
  for (let match; (match = pattern.exec(string)); ) {
    if (match[0]) found.push([codeAt(match.index), codeAt(match.index + match[0].length)]);
    else pattern.lastIndex++;
  }
  return found;
}

// The place of the first of sorted disjoint stretches that ends behind `start`.
function firstEndingAfter(stretches, start) {
  let low = 0, high = stretches.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (stretches[middle][1] <= start) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Maps code points one by one; a lone surrogate becomes U+FFFD.
function folder(changes) {
  const table = Uint32Array.from({ length: 0x10000 }, (_, c) => (c >= 0xd800 && c < 0xe000 ? 0xfffd : c));
  for (const [from, to] of changes) if (from < 0x10000) table[from] = to;
  return (codes) => codes.map((c) => (c < 0x10000 ? table[c] : changes.get(c) ?? c));
}

// Whether a code point is in one of the ranges [a0, b0, a1, b1, ...], both ends included.
function membership(ranges) {
  return (code) => {
    let low = 0, high = ranges.length / 2;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ranges[2 * middle + 1] < code) low = middle + 1;
      else high = middle;
    }
    return low < ranges.length / 2 && ranges[2 * low] <= code;
  };
}
