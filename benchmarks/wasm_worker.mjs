// What bench_wasm.py runs in node: texts of a JSON file through a folder that web/build.py wrote, one at a time.
//
// node wasm_worker.mjs FOLDER TEXTS.json -> {"found": [...], "first_seconds": ..., "seconds": ..., "batch_seconds": ...}

import { readFile } from "node:fs/promises";
import { performance } from "node:perf_hooks";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, file] = process.argv.slice(2).map((path) => resolve(path));
const { texts, options } = JSON.parse(await readFile(file, "utf8"));

const begin = performance.now();
const { load } = await import(pathToFileURL(join(folder, "cige.js")));
const read = async (name) => {
  const bytes = await readFile(join(folder, name));
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
};
const ner = await load(read);
const loaded = performance.now();
ner.find(texts[0], options);
const first = performance.now();

const found = texts.map((text) => ner.find(text, options)); // also compiles what is hot
const seconds = (run) => {
  const start = performance.now();
  run();
  return (performance.now() - start) / 1000;
};
const one = seconds(() => texts.forEach((text) => ner.find(text, options)));
const all = seconds(() => ner.findAll(texts, options));
const result = { found, load_seconds: (loaded - begin) / 1000, first_seconds: (first - begin) / 1000, seconds: one, batch_seconds: all };
process.stdout.write(JSON.stringify(result));
