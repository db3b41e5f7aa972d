// Lexicon: the words of the model's lexicon and a user's own, wherever they occur in a normalised text.

import { codesOf, stringOf } from "./text.js";

const ROW = 3; // int32 numbers of a row: start, end, word
const LIST_ROOM = 16 + 12 * 1024; // bytes of RowList of trie.h: address, two numbers, N_SMALL rows
const FAILED = { 1: "no memory for the words of a text; give it in parts", 2: "the lexicon names a word beyond its last" };

export class Lexicon {
  // keys, numbers: arrays of the trie; facts: the lexicon's manifest; user: its user.json.
  constructor(memory, rules, { keys, numbers, facts, user }) {
    const { max_probes, n_words, max_chars } = facts;
    if (keys.length !== numbers.length || !keys.length) throw new Error("lexicon: the keys of its trie do not fit the numbers");
    this.memory = memory, this.rules = rules, this.nBase = n_words;
    const fields = [memory.put(keys), memory.put(numbers), keys.length, max_probes, n_words, max_chars];
    this.trie = memory.put(BigUint64Array.from(fields, BigInt));
    this.list = memory.allocate(LIST_ROOM);
    this.removed = new Map((user.removed ?? []).map((word) => [this.#number(codesOf(word)), this.#ownText(word)]));
    if (Object.keys(user.modes ?? {}).length)
      throw new Error("this model folder has words that force or block entities, which the browser's form cannot; remove them");
    this.own = this.#userWords(user.added ?? [], user.labels ?? {});
  }

  // Words for one call besides those that the model folder has: a list of strings, or an object of words and labels
  // (null for none). Raises an Error that names a word that cannot be used.
  withWords(words) {
    const isList = Array.isArray(words);
    const given = isList ? words : Object.keys(words ?? {});
    if (!given.length) return this.own;
    const added = this.#userWords(given, isList ? {} : words);
    const texts = new Set(added.map((word) => word.text));
    return [...this.own.filter((word) => !texts.has(word.text)), ...added];
  }

  #userWords(words, labels) {
    const found = new Map();
    for (const word of words) {
      if (typeof word !== "string") throw new Error(`words: expected strings, got ${typeof word}`);
      const text = this.#ownText(word), codes = codesOf(text);
      const isSound = codes.length >= 2 && codes.length <= this.rules.json.max_word_chars;
      const isControl = codes.some((c) => c < 32 || c === 0x7f || c === 0x2028 || c === 0x2029 || c === 0xfffd);
      if (!isSound || isControl || this.rules.isSpace(codes[0]) || this.rules.isSpace(codes.at(-1)))
        throw new Error(`words: ${JSON.stringify(word)} cannot be a word; expected 2 to ${this.rules.json.max_word_chars} characters without blanks at the edges`);
      if (found.has(text)) continue; // the first label holds
      found.set(text, { text, codes, label: (Object.hasOwn(labels, word) ? labels[word] : null) ?? null });
    }
    return [...found.values()];
  }

  // The text by which a user's word is looked up, as normalize_word of cige.text.normalize.
  #ownText(word) {
    const { rules } = this;
    return stringOf(rules.foldMarks(rules.normalize(codesOf(word))).filter((c) => !rules.invisible.has(c)));
  }

  // The number of a word of the base lexicon, or -1.
  #number(codes) {
    const row = this.#walk(codes).find(([start, end]) => start === 0 && end === codes.length);
    return row ? row[2] : -1;
  }

  #walk(codes) {
    const { memory } = this;
    return memory.withCopies([codes], (address) => {
      const failed = memory.exports.find_words(this.trie, address, BigInt(codes.length), this.list);
      const [rows, n] = memory.view(Uint32Array, this.list, 2);
      const found = failed ? null : Array.from({ length: n }, (_, k) => [...memory.view(Int32Array, rows + 4 * ROW * k, ROW)]);
      memory.exports.free_words(this.list);
      if (failed) throw new Error(FAILED[failed]);
      return found;
    });
  }

  // The words over normalised code points, [start, end, id] sorted; ids from nBase on are places in `own`.
  match(codes, own) {
    const places = [...codes.keys()].filter((k) => !this.rules.invisible.has(codes[k]));
    const rows = this.#matchVisible(codes.filter((c) => !this.rules.invisible.has(c)), own);
    return this.#withinBudget(rows.map(([start, end, id]) => [places[start], places[end - 1] + 1, id]), codes.length);
  }

  // The same in code points that are all visible, however many there are.
  #matchVisible(codes, own) {
    const shown = new Set(own.map((word) => word.text)); // a removed word comes back with a user's, whatever its marks
    let rows = this.#walk(codes).filter(([, , id]) => !this.removed.has(id) || shown.has(this.removed.get(id)));
    const nBaseRows = rows.length;
    const marked = own.length ? this.rules.foldMarks(codes) : codes;
    own.forEach((word, k) => {
      for (let at = marked.indexOf(word.codes[0]); at >= 0; at = marked.indexOf(word.codes[0], at + 1))
        if (word.codes.every((c, i) => marked[at + i] === c)) rows.push([at, at + word.codes.length, this.nBase + k]);
    });
    if (rows.length > nBaseRows) rows.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
    const isCut = (place) => place > 0 && place < codes.length && kind(codes[place]) && kind(codes[place]) === kind(codes[place - 1]);
    return rows.filter(([start, end]) => !isCut(start) && !isCut(end));
  }

  // As lattice/lattice.py: a user's own words are kept first, then longer ones, then earlier ones.
  #withinBudget(rows, nChars) {
    const budget = Math.floor(this.rules.json.max_words_per_char * nChars) + 8;
    if (rows.length <= budget) return rows;
    const order = rows.map((_, k) => k).sort((a, b) => {
      const [x, y] = [rows[a], rows[b]];
      return (x[2] < this.nBase) - (y[2] < this.nBase) || y[1] - y[0] - (x[1] - x[0]) || x[0] - y[0] || a - b;
    });
    return order.slice(0, budget).sort((a, b) => a - b).map((k) => rows[k]);
  }
}

// 1: a Latin letter, 2: a digit, 0: neither.
function kind(c) {
  return c >= 48 && c <= 57 ? 2 : (c >= 65 && c <= 90) || (c >= 97 && c <= 122) ? 1 : 0;
}
