// What reads texts beside the page, so that typing goes on while a long text is read.
//
// It posts { labels, seconds } once the model is there, and for { text, options } either { entities, ms } or { error }.

import { load } from "./cige.js";

const began = performance.now();
const read = async (name) => {
  const answer = await fetch(name);
  if (!answer.ok) throw new Error(`${name}: the server says ${answer.status} ${answer.statusText}`);
  return answer.arrayBuffer();
};

function answered(work) {
  try {
    return work();
  } catch (error) {
    return { error: error.message };
  }
}

try {
  const ner = await load(read);
  addEventListener("message", ({ data: { text, options } }) => {
    const start = performance.now();
    postMessage(answered(() => ({ entities: ner.find(text, options), ms: performance.now() - start })));
  });
  postMessage({ labels: ner.labels, seconds: (performance.now() - began) / 1000 });
} catch (error) {
  postMessage({ error: error.message });
}
