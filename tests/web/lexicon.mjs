// What test_lexicon_js.py runs in node: the words of a user's own as web/lexicon.js has them, over a lexicon without words.
//
// node lexicon.mjs LEXICON_JS < [words of a call, ...] > for each call the words and labels

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { Lexicon } = await import(pathToFileURL(process.argv[2]));
const exports = { find_words: () => 0, free_words: () => {} };
const memory = { exports, put: () => 1, allocate: () => 1, withCopies: (_, use) => use(1), view: () => [0, 0] };
const rules = { normalize: (codes) => codes, foldMarks: (codes) => codes.map((c) => (c === 0xff1a ? 58 : c)), isSpace: (code) => code === 32, json: { max_word_chars: 64 } };
const facts = { max_probes: 1, n_words: 0, max_chars: 4 };
const lexicon = new Lexicon(memory, rules, { keys: [1], numbers: [1], facts, user: {} });
const calls = JSON.parse(readFileSync(0, "utf8"));
const shown = ({ text, label }) => [text, label && String(label)]; // a function would be written as null
process.stdout.write(JSON.stringify(calls.map((words) => lexicon.withWords(words).map(shown))));
