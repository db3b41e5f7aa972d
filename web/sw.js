// Keeps the files of this folder in the browser, so that the page opens without a network. build.py fills in the two
// constants; another build has another version, is fetched whole beside the one in use, and takes over when no page
// of that is open any longer.

const VERSION = /*VERSION*/ "";
const FILES = /*FILES*/ [];
const OURS = `cige ${registration.scope} `;

addEventListener("install", (event) => {
  const fetchMissing = async () => {
    const cache = await caches.open(OURS + VERSION);
    const kept = await Promise.all(FILES.map((name) => cache.match(name))); // those of the model, from worker.js
    const missing = FILES.filter((_, k) => !kept[k]);
    await cache.addAll(missing.map((name) => new Request(name, { cache: "no-cache" })));
  };
  event.waitUntil(fetchMissing());
});

addEventListener("activate", (event) => {
  const clean = async () => {
    const earlier = (await caches.keys()).filter((name) => name.startsWith(OURS) && name !== OURS + VERSION);
    await Promise.all(earlier.map((name) => caches.delete(name)));
    await clients.claim();
  };
  event.waitUntil(clean());
});

addEventListener("fetch", (event) => {
  if (event.request.method !== "GET" || !event.request.url.startsWith(registration.scope)) return;
  const address = event.request.url.replace(/[?#].*$/, "").replace(/\/index\.html$/, "/");
  const answer = caches.open(OURS + VERSION).then((cache) => cache.match(address));
  event.respondWith(answer.then((kept) => kept ?? fetch(event.request)));
});
