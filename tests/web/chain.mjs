// node chain.mjs web/chain.js < {"tags", "scheme", "scores": {"start", ...}, "allowed": {"allowed_start", ...}}
//
// Prints the field `spread` of the chain that chain.js makes.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { Chain } = await import(pathToFileURL(process.argv[2]));
const { tags, scheme, scores, allowed } = JSON.parse(readFileSync(0, "utf-8"));
const arrays = {};
for (const [name, data] of Object.entries({ ...scores, ...allowed })) arrays[`crf.${name}`] = { data };
let filled;
const memory = { constants: { BLOCK: 8 }, put: () => 0, struct: (name, fields) => ((filled = fields), 0) };
new Chain(memory, arrays, { tags, scheme });
console.log(JSON.stringify(filled.spread));
