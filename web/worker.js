// What reads texts beside the page, so that typing goes on while a long text is read.
//
// It posts { labels, seconds } once the model is there, { isStored } once its files are kept in the browser or cannot be,
// and for { text, options } either { entities, ms } or { error }.

import { load } from "./cige.js";

const VERSION = /*VERSION*/ ""; // build.py fills it in; sw.js has the same
const CACHE = `cige ${new URL("./", location)} ${VERSION}`; // that of sw.js, which thus need not fetch anything twice

const began = performance.now(), fetched = new Map();

// The bytes of a file: those that the browser keeps, or else those of the server.
async function read(cache, name) {
  const kept = await cache?.match(new URL(name, location));
  if (kept) return kept.arrayBuffer();
  const answer = await fetch(name, { cache: "no-cache" });
  if (!answer.ok) throw new Error(`${name}: the server says ${answer.status} ${answer.statusText}`);
  const bytes = await answer.arrayBuffer();
  fetched.set(name, bytes);
  return bytes;
}

// Browsers keep nothing for pages over plain HTTP, and in some private windows; then this is null.
async function opened() {
  try {
    return await caches.open(CACHE);
  } catch {
    return null;
  }
}

async function store(cache) {
  for (const [name, bytes] of fetched) await cache.put(new URL(name, location), new Response(bytes));
  fetched.clear();
}

function answered(work) {
  try {
    return work();
  } catch (error) {
    return { error: error.message };
  }
}

try {
  const cache = await opened(), ner = await load((name) => read(cache, name));
  addEventListener("message", ({ data: { text, options } }) => {
    const start = performance.now();
    postMessage(answered(() => ({ entities: ner.find(text, options), ms: performance.now() - start })));
  });
  postMessage({ labels: ner.labels, seconds: (performance.now() - began) / 1000 });
  const isStored = cache ? await store(cache).then(() => true, () => false) : false; // false: there is no room
  postMessage({ isStored });
} catch (error) {
  postMessage({ error: error.message });
}
