// What test_memory_js.py runs in node: web/memory.js over a runtime whose table is written here.
//
// node memory.mjs MEMORY_JS < { table, problem, fill } > what is read back of the struct that `fill` fills, the constants, or
// the message of the Error

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { Memory } = await import(pathToFileURL(process.argv[2]));
const { table, problem, fill } = JSON.parse(readFileSync(0, "utf8"));

const memory = new WebAssembly.Memory({ initial: 1 });
let free = 8; // nothing is at 0
const malloc = (n) => (free = 8 * Math.ceil((free + n) / 8)) - 8 * Math.ceil(n / 8);
const text = (string) => {
  if (string === null) return 0;
  const at = malloc(string.length + 1);
  new Uint8Array(memory.buffer, at, string.length).set(new TextEncoder().encode(string));
  return at;
};
const rows = [...table, [null, null, null, 0, 0]].map(([of, name, type, ...numbers]) => [text(of), text(name), text(type), ...numbers]);
const first = malloc(20 * rows.length);
new Int32Array(memory.buffer, first, 5 * rows.length).set(rows.flat());
const exports = {
  memory,
  malloc,
  free: () => {},
  layout_of_structs: () => first,
  check_model: (model, at) => {
    if (!problem) return 0;
    const view = new DataView(memory.buffer, at);
    [0, 12, 16].forEach((place, k) => view.setUint32(place, text(problem.names[k]), true));
    view.setBigInt64(4, BigInt(problem.number), true);
    ["given", "least", "most"].forEach((name, k) => view.setFloat64(20 + 8 * k, problem[name] ?? NaN, true));
    return 1;
  },
};

const answer = (() => {
  try {
    const own = new Memory(exports);
    if (problem) return own.model({});
    return { constants: own.constants, read: own.read(fill[0], own.struct(...fill)) };
  } catch (error) {
    return error.message;
  }
})();
process.stdout.write(JSON.stringify(answer));
