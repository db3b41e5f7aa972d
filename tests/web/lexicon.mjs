// What test_lexicon_js.py runs in node: the words of a user's own as web/lexicon.js has them, over a lexicon whose one
// word, 甲：乙, the user removed.
//
// node lexicon.mjs LEXICON_JS < [words of a call, ...] > for each call the words and labels
// node lexicon.mjs LEXICON_JS TEXT < [words of a call, ...] > for each call the numbers of the words in TEXT, 甲：乙 is 0

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { Lexicon } = await import(pathToFileURL(process.argv[2]));
const WORD = "甲：乙", codesOf = (text) => Uint32Array.from(text, (char) => char.codePointAt(0));
let place = -1; // where the word is in the text that was searched last
const exports = { find_words: () => 0, free_words: () => {} };
const memory = {
  exports,
  put: () => 1,
  allocate: () => 1,
  withCopies: ([codes], use) => ((place = String.fromCodePoint(...codes).indexOf(WORD)), use(1)),
  view: (kind) => (kind === Uint32Array ? [0, place < 0 ? 0 : 1] : [place, place + WORD.length, 0]),
};
const rules = {
  normalize: (codes) => codes,
  foldMarks: (codes) => codes.map((c) => (c === 0xff1a ? 58 : c)),
  invisible: new Set([0x200b]),
  isSpace: (code) => code === 32,
  json: { max_word_chars: 64, max_words_per_char: 8 },
};
const facts = { max_probes: 1, n_words: 1, max_chars: 4 };
const lexicon = new Lexicon(memory, rules, { keys: [1], numbers: [1], facts, user: { removed: [WORD] } });
const calls = JSON.parse(readFileSync(0, "utf8"));
const shown = ({ text, label }) => [text, label && String(label)]; // a function would be written as null
const numbers = (own) => lexicon.match(codesOf(process.argv[3]), own).map(([, , id]) => id);
const result = (own) => (process.argv[3] ? numbers(own) : own.map(shown));
process.stdout.write(JSON.stringify(calls.map((words) => result(lexicon.withWords(words)))));
