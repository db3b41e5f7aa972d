// Chain: a trained CRF in the form that chain.h reads; runtime/native_chain.py says the same in Python.

const PREFIX = { O: 0, B: 1, M: 2, I: 2, E: 3, S: 4 };
const NO_LIMIT = 2 ** 31 - 1;
const UNKNOWN_TYPE = "*"; // names of a type that the model was not trained on; only user words can say which

export class Chain {
  // arrays: those of the model's weights; facts: its manifest.
  constructor(memory, arrays, { tags, scheme, max_lengths: limits = {} }) {
    const nAll = tags.length, { BLOCK } = memory.constants, put = (array) => memory.put(array);
    const masked = (name, mask) =>
      Float64Array.from(arrays[`crf.${name}`].data, (x, k) => (arrays[`crf.${mask}`].data[k] ? x : -Infinity));
    const start = masked("start", "allowed_start"), end = masked("end", "allowed_end"), all = masked("transitions", "allowed");
    if (start.length !== nAll || all.length !== nAll * nAll) throw new Error(`CRF scores for ${start.length} tags, not ${nAll}`);
    const parts = tags.map((tag) => (tag === "O" ? ["O", ""] : [tag[0], tag.slice(2)]));
    this.labels = [...new Set(parts.map(([, label]) => label))].filter((label) => label && label !== UNKNOWN_TYPE).sort(byCode);
    // Tags that allow the same neighbours stand together, so that they fill blocks of their own.
    const group = (k) => (start[k] > -Infinity ? +(end[k] > -Infinity) : 3 - (end[k] > -Infinity));
    const order = tags.map((_, k) => k).filter((k) => parts[k][1] !== UNKNOWN_TYPE).sort((a, b) => group(a) - group(b) || a - b);
    const nTags = order.length, nLanes = Math.ceil(nTags / BLOCK) * BLOCK;

    const square = (of) => {
      const out = new Float64Array(nTags * nLanes).fill(-Infinity);
      for (let i = 0; i < nTags; i++) for (let j = 0; j < nTags; j++) out[i * nLanes + j] = of(order[i], order[j]);
      return out;
    };
    const row = (of) => Float64Array.from({ length: nLanes }, (_, k) => (k < nTags ? of[order[k]] : -Infinity));
    const scores = square((i, j) => all[i * nAll + j]), into = square((i, j) => all[j * nAll + i]);
    const side = (numbers, allowed) => {
      const [first, place, own] = byBlock(numbers, allowed, nTags, BLOCK);
      return { first: put(first), place: put(place), numbers: put(own) };
    };
    const placeOf = new Map(order.map((k, place) => [tags[k], place]));
    const middle = scheme === "BMES" ? "M" : "I";
    const integers = (numbers) => put(Int32Array.from(numbers));
    this.address = memory.struct("Chain", {
      n_tags: nTags,
      n_lanes: nLanes,
      start: put(row(start)),
      end: put(row(end)),
      scores: put(scores),
      spread: spreadOf([...start, ...all, ...end]),
      into: put(into),
      best: side(scores, scores),
      forward: side(scores.map(Math.exp), scores),
      backward: side(into.map(Math.exp), into),
      order: integers(order),
      prefix: integers(order.map((k) => PREFIX[parts[k][0]])),
      label: integers(order.map((k) => this.labels.indexOf(parts[k][1]))),
      places: integers(this.labels.flatMap((label) => ["B", middle, "E", "S"].map((part) => placeOf.get(`${part}-${label}`) ?? -1))),
      longest: integers(this.labels.map((label) => Math.min(limits[label] ?? NO_LIMIT, NO_LIMIT))),
      is_open: scheme === "BIO",
      n_labels: this.labels.length,
      n_slots: 0, // no copies for blocked words
      n_plain: nLanes,
      base: null,
      slot: null,
      part: null,
    });
  }
}

// The greatest difference of scores that are not forbidden.
function spreadOf(scores) {
  let most = -Infinity, least = Infinity; // a loop, since a call cannot have as many arguments as there are pairs of tags
  for (const x of scores) {
    if (x === -Infinity) continue;
    if (x > most) most = x;
    if (x < least) least = x;
  }
  return most - least;
}

// The structure Transitions: of each block of columns the rows with an allowed pair, and their numbers.
function byBlock(numbers, scores, nRows, BLOCK) {
  const nLanes = scores.length / nRows, first = [0], rows = [], own = [];
  for (let block = 0; block < nLanes; block += BLOCK) {
    for (let r = 0; r < nRows; r++) {
      const at = r * nLanes + block;
      if (!scores.subarray(at, at + BLOCK).some((x) => x > -Infinity)) continue;
      rows.push(r);
      own.push(...numbers.subarray(at, at + BLOCK));
    }
    first.push(rows.length);
  }
  return [Int32Array.from(first), Int32Array.from(rows), Float64Array.from(own)];
}

// The order of Python's strings.
export function byCode(a, b) {
  const [x, y] = [[...a], [...b]];
  for (let k = 0; k < Math.min(x.length, y.length); k++) if (x[k] !== y[k]) return x[k].codePointAt(0) - y[k].codePointAt(0);
  return x.length - y.length;
}
