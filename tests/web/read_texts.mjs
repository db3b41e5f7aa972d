// What test_text_js.py runs in node: how web/text.js reads texts.
//
// node read_texts.mjs TEXT_JS < { rules, texts, facts } > for each text its closed stretches, its windows with what is read in
// each, also as a model with these facts reads it, the trimmed form of each stretch of at most six characters, stretches
// with their Latin words and brackets completed, and the text itself by way of code points

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { codesOf, stringOf, TextRules } = await import(pathToFileURL(process.argv[2]));
const { rules: json, texts, facts } = JSON.parse(readFileSync(0, "utf8"));
const rules = new TextRules(json);

const answers = texts.map((text) => {
  const codes = codesOf(text), closed = rules.closedStretches(codes);
  const windows = rules.windows(codes, facts).map((window) => {
    const read = rules.read(codes, window, closed);
    const plain = { ...window, codes: [...read.codes], closed: [...(read.isClosed ?? [])] };
    const words = read.codes.length ? [[0, 1, 7]] : [];
    const model = rules.asModelReads(read, window, words, facts);
    return { ...plain, model: { ...model, codes: [...model.codes], isClosed: [...(model.isClosed ?? [])] } };
  });
  const trimmed = [...codes].flatMap((_, start) =>
    [1, 2, 3, 4, 5, 6].filter((n) => start + n <= codes.length).map((n) => rules.trimmed(codes, start, start + n)),
  );
  const spans = [...codes.keys()].filter((k) => k % 3 === 0).map((k) => ({ start: k, end: Math.min(k + 2 + (k % 2), codes.length), score: ((k * 7) % 11) / 11 }));
  const whole = rules.withWholeEdges(codes, spans).map(({ start, end }) => [start, end]);
  return { closed, windows, trimmed, whole, back: stringOf(codes) };
});
process.stdout.write(JSON.stringify(answers));
