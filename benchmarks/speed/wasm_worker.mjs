// What wasm.py runs in node: texts of a JSON file through a folder that web/build.py wrote, one at a time.
//
// node wasm_worker.mjs FOLDER GIVEN.json; GIVEN holds { texts, requests: [options, ...], precision }. Written are the seconds until
// the model was there and until the first answer, the entities of each text under each request, and the milliseconds
// of each text under the first request, once everything has been compiled.

import { readFile } from "node:fs/promises";
import { performance } from "node:perf_hooks";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, file] = process.argv.slice(2).map((path) => resolve(path));
const { texts, requests, precision } = JSON.parse(await readFile(file, "utf8"));

const begin = performance.now(), processor = () => Object.values(process.cpuUsage()).reduce((a, b) => a + b) / 1e6;
const beginProcessor = processor();
const { load } = await import(pathToFileURL(join(folder, "cige.js")));
const read = async (name) => {
  const bytes = await readFile(join(folder, name));
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
};
const ner = await load(read, { precision });
const loaded = performance.now(), loadProcessor = processor() - beginProcessor;
ner.find(texts[0], requests[0]);
const first = performance.now();

const found = requests.map((options) => texts.map((text) => ner.find(text, options)));
const milliseconds = texts.map((text) => {
  const start = performance.now();
  ner.find(text, requests[0]);
  return performance.now() - start;
});
const together = requests.map((options) => ner.findAll(texts, options));
const result = {
  found, together, load_processor_seconds: loadProcessor, load_seconds: (loaded - begin) / 1000, first_seconds: (first - loaded) / 1000, milliseconds,
};
process.stdout.write(JSON.stringify(result));
