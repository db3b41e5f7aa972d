// cige in JavaScript: entities of Chinese text, found by the same C code as in Python, compiled to WebAssembly.
//
//   const ner = await load((name) => fetch(name).then((answer) => answer.arrayBuffer()));
//   ner.find("罗氏婴儿配方粉在上海上市");  // [{ start, end, label, text, score }, ...]

import { Chain } from "./chain.js";
import { safetensors } from "./files.js";
import { Flat, FLOAT32, INT16 } from "./flat.js";
import { Gazetteers } from "./gazetteers.js";
import { Lexicon } from "./lexicon.js";
import { Memory } from "./memory.js";
import { unzipped } from "./packed.js";
import { Selection } from "./selection.js";
import { codesOf, stringOf, TextRules } from "./text.js";
import { vocabulary } from "./vocabulary.js";

const KIND = "cige model", VERSION = 1, LEXICON_VERSION = 2;
const TAB = 9;
const BATCH = 16; // windows that are read together
const PRECISIONS = { int16: INT16, float32: FLOAT32 };

// Read a model.
//
// read: name of a file -> Promise of an ArrayBuffer. Asked for are cige.wasm.gz, rules.json.gz and the files of the model
// under model/. precision: "int16", in which products take half the time and scores differ by some ten thousandths, or
// "float32". Raises an Error that says which file is missing, cut short or of a model that only Python reads.
export async function load(read, { precision = "int16" } = {}) {
  const bytes = (name) => read(`${name}.gz`).then((given) => unzipped(given, name));
  const json = async (name) => JSON.parse(new TextDecoder().decode(await bytes(name)));
  const arrays = async (name) => safetensors(await bytes(`model/${name}`), name);
  const [facts, lexiconFacts, user, rules, module, weights, rows, trie] = await Promise.all([
    json("model/manifest.json"), json("model/lexicon/manifest.json"), json("model/lexicon/user.json"), json("rules.json"),
    bytes("cige.wasm").then((code) => WebAssembly.compile(code)),
    arrays("model.safetensors"), arrays("vocabulary.safetensors"), arrays("lexicon/trie.safetensors"),
  ]);
  mustBeReadable(facts, lexiconFacts);
  if (!(precision in PRECISIONS)) throw new Error(`given precision=${precision}; expected ${Object.keys(PRECISIONS).join(" or ")}`);
  const instance = await WebAssembly.instantiate(module, {});
  instance.exports._initialize?.();
  const words = { keys: trie.keys.data, numbers: trie.numbers.data, facts: lexiconFacts, user };
  return new NER(new Memory(instance.exports), facts, { weights, rows, words, rules, precision: PRECISIONS[precision] });
}

function mustBeReadable(facts, lexiconFacts) {
  if (facts.kind !== KIND || facts.version !== VERSION)
    throw new Error(`model/manifest.json: ${facts.kind} in version ${facts.version}; expected ${KIND} in version ${VERSION}`);
  if (facts.architecture !== "flat" || facts.config.bert)
    throw new Error(`a model of architecture ${facts.architecture}${facts.config.bert ? " with BERT features" : ""}; the browser's form reads FLAT`);
  if (facts.config.components) throw new Error("a model that reads components of characters; the browser's form does not");
  if (lexiconFacts.kind !== "lexicon" || lexiconFacts.version !== LEXICON_VERSION)
    throw new Error(`model/lexicon: ${lexiconFacts.kind} in version ${lexiconFacts.version}; expected version ${LEXICON_VERSION}`);
  if (lexiconFacts.fingerprint !== facts.lexicon_fingerprint)
    throw new Error("model/lexicon: a lexicon of another build than the model's; copy the model folder again");
}

export class NER {
  constructor(memory, facts, { weights, rows, words, rules, precision }) {
    this.memory = memory, this.facts = facts;
    this.rules = new TextRules(rules);
    this.lexicon = new Lexicon(memory, this.rules, words);
    this.#mustKnow(this.lexicon.own);
    this.vocabulary = vocabulary(memory, rows);
    this.wordLabels = new Map((facts.word_labels ?? []).map((label, k) => [label, k + 1]));
    this.gazetteers = facts.config.gazetteers && rows.word_groups ? new Gazetteers(rows.word_groups.data, facts.n_groups) : null;
    const { wordLabels: { size: nLabels }, gazetteers } = this;
    this.flat = new Flat(memory, facts.config, weights, { nLabels, gazetteers, precision });
    this.chain = new Chain(memory, weights, facts);
    this.#open();
  }

  // Makes the handle by which the runtime reads the model, again whenever FLAT's tables have grown.
  #open() {
    const { memory, vocabulary, flat, chain } = this;
    memory.free(this.model);
    this.model = memory.model({ vocabulary, flat: flat.address, is_known: flat.input.isKnown, chain: chain.address });
  }

  // The types of entity that the model knows.
  get labels() {
    return [...this.facts.labels];
  }

  // The entities of a text, sorted and not overlapping, as in Python: { start, end, label, text, score }.
  //
  // options: minScore, labels and types as a call in Python has them; words: a list of words of the user's own for this
  // call, or an object of words and labels; offsets: "code_points" as in Python, or "utf16" as JavaScript counts.
  find(text, options = {}) {
    return this.analyze(text, options).entities;
  }

  // The entities of several texts, whose windows are read together.
  findAll(texts, options = {}) {
    return this.#read(texts, options).map((found) => found.entities);
  }

  // { entities, words }: also the words that the text was read with, { start, end, text, isUser }.
  analyze(text, options = {}) {
    return this.#read([text], options)[0];
  }

  #read(texts, { words = [], offsets = "code_points", ...request }) {
    if (!["code_points", "utf16"].includes(offsets)) throw new Error(`given offsets=${offsets}; expected code_points or utf16`);
    const own = this.lexicon.withWords(words);
    this.#mustKnow(own);
    const selection = new Selection(this.facts, request);
    const pending = texts.map((text) => {
      if (typeof text !== "string") throw new TypeError(`given ${typeof text}; expected a string`);
      const codes = codesOf(text), closed = this.rules.closedStretches(codes);
      const read = this.rules.windows(codes, this.facts).map((window) => this.#withOwnWords(codes, window, own));
      const windows = read.map((window) => this.#lattice(codes, window, closed, own));
      return { codes, windows };
    });
    const bySize = pending.flatMap((text) => text.windows).sort((a, b) => a.nNodes - b.nNodes);
    for (let k = 0; k < bySize.length; k += BATCH) this.#readBatch(bySize.slice(k, k + BATCH), own, selection);
    return pending.map(({ codes, windows }) => {
      const at = offsets === "utf16" ? utf16Offsets(codes) : (place) => place;
      const shown = ({ start, end, ...more }) => ({ start: at(start), end: at(end), ...more });
      return { entities: merged(codes, windows).map(shown), words: coreWords(windows, this.lexicon.nBase).map(shown) };
    });
  }

  // As _with_own_words of cige.tagging.windows.
  #withOwnWords(codes, window, own) {
    const { coreStart, coreEnd, end } = window, { max_word_chars: longest } = this.rules.json;
    if (end === coreEnd) return window;
    const first = Math.max(coreStart, coreEnd - longest);
    let last = Math.min(codes.length, coreEnd + longest);
    const isEnd = (code) => code === TAB || this.rules.line_breaks.has(code);
    const cellEnd = codes.subarray(coreEnd, last).findIndex(isEnd);
    if (cellEnd >= 0) last = coreEnd + cellEnd;
    const ends = this.lexicon
      .match(this.rules.normalize(codes.slice(first, last)), own)
      .filter(([a, b, word]) => word >= this.lexicon.nBase && first + a < coreEnd && coreEnd < first + b)
      .map(([, b]) => first + b);
    return { ...window, end: Math.max(end, ...ends) };
  }

  #lattice(text, window, closed, own) {
    const plain = this.rules.read(text, window, closed), matched = this.lexicon.match(plain.codes, own);
    const { window: shifted, codes, isClosed, words } = this.rules.asModelReads(plain, window, matched, this.facts);
    return { ...shifted, codes, isClosed, words, nNodes: codes.length + words.length, spans: [] };
  }

  // Sets the spans of each lattice of a batch.
  #readBatch(batch, own, selection) {
    const { memory, flat, chain } = this, total = batch.reduce((n, x) => n + x.codes.length, 0);
    const words = batch.flatMap((x) => x.words), codes = new Uint32Array(total);
    const isClosed = batch.some((x) => x.isClosed) ? new Uint8Array(total) : null;
    let first = 0;
    for (const x of batch) {
      codes.set(x.codes, first);
      if (x.isClosed) isClosed.set(x.isClosed, first);
      first += x.codes.length;
    }
    const arrays = {
      n_chars: Int32Array.from(batch, (x) => x.codes.length),
      n_words: Int32Array.from(batch, (x) => x.words.length),
      codes,
      matches: Int32Array.from(words.flat()),
      labels: this.#labelRows(words, own),
    };
    const names = Object.keys(arrays), { MISSING, NO_MEMORY } = memory.constants;
    const spans = memory.allocate(memory.structs.ScoredSpan.size * total), nSpans = memory.allocate(4 * batch.length);
    const families = selection.families(memory, chain.labels);
    try {
      memory.withCopies([...Object.values(arrays), isClosed], (...copies) => {
        const sizes = { n_sentences: batch.length, total_chars: total, total_words: words.length };
        const lattices = memory.struct("Lattices", { ...sizes, ...Object.fromEntries(names.map((name, k) => [name, copies[k]])) });
        const reading = memory.struct("Reading", {
          n_threads: 1,
          is_closed: copies.at(-1),
          families: families.address,
          rules: null, // a page has neither forced nor blocked words
          room: total,
          spans,
          n_spans: nSpans,
        });
        let failed = memory.exports.read_lattices(this.model, lattices, reading);
        if (failed === MISSING) {
          this.#prepare(lattices, batch, total, words);
          failed = memory.exports.read_lattices(this.model, lattices, reading);
        }
        [lattices, reading].forEach((address) => memory.free(address));
        if (failed) throw new Error(failed === NO_MEMORY ? "no memory for a work buffer; give the text in parts" : `the runtime failed (${failed})`);
      });
      this.#collect(batch, memory.view(Int32Array, nSpans, batch.length).slice(), spans, selection);
    } finally {
      families.free();
      [spans, nSpans].forEach((address) => memory.free(address));
    }
  }

  // int32[words]: the row that each word has in the table of labels, or null where the model reads none.
  #labelRows(words, own) {
    const { lexicon: { nBase }, wordLabels: known, gazetteers } = this;
    const ofUser = (label) => (label === null ? 0 : known.get(label) ?? known.size + 1);
    if (!gazetteers && words.every(([, , id]) => id < nBase || own[id - nBase].label === null)) return null;
    return Int32Array.from(words, ([, , id]) =>
      id < nBase ? gazetteers?.row(id, known.size) ?? 0 : ofUser(own[id - nBase].label),
    );
  }

  #prepare(lattices, batch, total, words) {
    const { memory } = this, n = words.length, address = memory.allocate(4 * (2 * total + 3 * n));
    const of = (k) => address + 4 * k;
    const rows = memory.struct("RowsOfTables", {
      ...{ chars: of(0), bigrams: of(total) },
      ...{ words: of(2 * total), starts: of(2 * total + n), ends: of(2 * total + 2 * n) },
    });
    memory.exports.rows_of_lattices(this.vocabulary, lattices, rows);
    const chars = memory.view(Int32Array, address, total).slice();
    [address, rows].forEach((each) => memory.free(each));
    const longest = batch.reduce((most, x) => Math.max(most, x.codes.length), 0);
    if (this.flat.prepare(chars, longest, [...new Set(words.map(([start, end]) => end - start - 1))])) this.#open();
  }

  #collect(batch, nSpans, address, selection) {
    let at = address;
    batch.forEach((x, k) => {
      for (let n = nSpans[k]; n > 0; n--, at += this.memory.structs.ScoredSpan.size) {
        const span = this.memory.read("ScoredSpan", at), label = selection.names.get(this.chain.labels[span.label]);
        const edges = label && this.rules.trimmed(x.codes, span.start, span.end), score = selection.score(span.score);
        if (edges && score >= selection.minScore) x.spans.push({ start: edges[0], end: edges[1], label, score });
      }
      x.spans = this.rules.withWholeEdges(x.codes, x.spans, x.isClosed, selection.maxLengths);
    });
  }

  #mustKnow(words) {
    const strange = words.find((word) => word.label !== null && !this.facts.labels.includes(word.label));
    if (strange)
      throw new Error(`words: ${strange.text} has the label ${strange.label}, which the model was not trained on; the browser's form takes ${this.facts.labels.join(", ")}`);
  }
}

// As tagging/merging.py: a window answers for entities that start in its core; of two that overlap the more probable one
// stays.
function merged(codes, windows) {
  const found = windows.flatMap((w) =>
    w.spans
      .map((span) => ({ ...span, start: w.start + span.start, end: w.start + span.end }))
      .filter((span) => w.coreStart <= span.start && span.start < w.coreEnd),
  );
  const kept = []; // sorted by start, and so by end
  for (const span of found.sort((a, b) => b.score - a.score || a.start - b.start)) {
    let low = 0, high = kept.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (kept[middle].start < span.start) low = middle + 1;
      else high = middle;
    }
    const overlaps = (low > 0 && kept[low - 1].end > span.start) || (low < kept.length && kept[low].start < span.end);
    if (!overlaps) kept.splice(low, 0, span);
  }
  return kept.map(({ start, end, label, score }) => ({ start, end, label, text: stringOf(codes.subarray(start, end)), score }));
}

function coreWords(windows, nBase) {
  return windows.flatMap((w) =>
    w.words
      .filter(([start]) => w.coreStart <= w.start + start && w.start + start < w.coreEnd)
      .map(([start, end, id]) => ({
        start: w.start + start, end: w.start + end, text: stringOf(w.codes.subarray(start, end)), isUser: id >= nBase,
      })),
  );
}

function utf16Offsets(codes) {
  const at = new Uint32Array(codes.length + 1);
  codes.forEach((c, k) => (at[k + 1] = at[k] + (c > 0xffff ? 2 : 1)));
  return (place) => at[place];
}
