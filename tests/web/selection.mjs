// What test_selection_js.py runs in node: the lengths that web/selection.js allows under each request.
//
// node selection.mjs SELECTION_JS TEXT_JS < { rules, facts, requests, text, spans } > for each request the lengths by label, and
// the spans with their Latin words completed

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [{ Selection }, { codesOf, TextRules }] = await Promise.all(process.argv.slice(2).map((path) => import(pathToFileURL(path))));
const { rules: json, facts, requests, text, spans } = JSON.parse(readFileSync(0, "utf8"));
const rules = new TextRules(json);
const answers = requests.map((request) => {
  const { maxLengths } = new Selection(facts, request), codes = codesOf(text);
  const finite = Object.fromEntries(Object.entries(maxLengths).filter(([, n]) => n < Infinity));
  return { lengths: finite, whole: rules.withWholeEdges(codes, spans, null, maxLengths).map(({ start, end }) => [start, end]) };
});
process.stdout.write(JSON.stringify(answers));
