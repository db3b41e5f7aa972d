// The page: what is typed is read by the worker, in the browser; nothing is sent anywhere.

const WAIT_MS = 120; // pause in typing before the text is read
const SAID = {
  en: { tagline: "Entities in Chinese text, found in this browser: what you type stays on this device.", text: "Text",
    words: "Your own words", word: "Word", type: "Type", untyped: "none", add: "Add word", entities: "Entities", json: "JSON",
    private: "The model reads your words as evidence beside those of its lexicon; they are kept in this browser.",
    copy: "Copy as JSON", copied: "Copied", remove: "Remove", none: "No entity.", other: "中文",
    fetching: (mb) => `Fetching the model (${mb} MB) …`, loading: "Loading the model …",
    count: (n, ms) => `${n} ${n === 1 ? "entity" : "entities"}, ${ms} ms`,
    kept: "The page is kept in this browser and works without a network.",
    unkept: "The browser does not keep this page for use without a network; it needs HTTPS, or http://localhost." },
  zh: { tagline: "找出中文里的实体，全部在浏览器里计算：输入的文字不离开本机。", text: "文本", words: "自己的词", word: "词",
    type: "类型", untyped: "不指定", add: "添加", entities: "实体", json: "JSON",
    private: "模型把这些词和词典里的词一起作为证据来读；它们保存在本浏览器里。", copy: "复制 JSON", copied: "已复制", remove: "删除",
    none: "没有实体。", other: "English", fetching: (mb) => `正在下载模型（${mb} MB）……`, loading: "正在加载模型……",
    count: (n, ms) => `${n} 个实体，${ms} 毫秒`, kept: "本页已存入浏览器，没有网络也能使用。",
    unkept: "浏览器没有存下本页，离线时不能使用；需要 HTTPS 或 http://localhost。" },
};
const byId = (id) => document.getElementById(id);
const facts = await fetch("page.json").then((answer) => answer.json()); // { colours: of each label, megabytes }
let language = kept("cige-language") ?? (navigator.language.startsWith("zh") ? "zh" : "en");
let own = wordsOf(kept("cige-words")), worker = null, timer = 0, asked = null, isLoaded = false, isStale = false;
let status = (said) => said.fetching(facts.megabytes), isKept = null;

// Browsers may forbid pages to store anything.
function kept(name, value) {
  try {
    return value === undefined ? localStorage.getItem(name) : localStorage.setItem(name, value);
  } catch {
    return null;
  }
}

// The user's words { text, label } of what was kept; none of what is not theirs.
function wordsOf(json) {
  try {
    return JSON.parse(json ?? "[]").filter(({ text, label }) => typeof text === "string" && (label === null || typeof label === "string"));
  } catch {
    return [];
  }
}

function make(name, text, more = {}) {
  return Object.assign(document.createElement(name), { textContent: text, ...more });
}

function speak() {
  const said = SAID[language];
  document.documentElement.lang = language;
  for (const place of document.querySelectorAll("[data-say]")) place.textContent = said[place.dataset.say];
  for (const place of document.querySelectorAll("[data-name]")) place.setAttribute("aria-label", said[place.dataset.name]);
  byId("language").textContent = said.other;
  byId("language").lang = language === "zh" ? "en" : "zh";
  byId("status").textContent = status(said);
  byId("offline").textContent = isKept === null ? "" : isKept ? said.kept : said.unkept;
  listWords();
}

function say(told) {
  status = told;
  byId("status").textContent = told(SAID[language]);
}

// Resolves once all files are kept in the browser; false where they cannot be.
async function keepForOffline() {
  try {
    const registration = await navigator.serviceWorker.register("sw.js"), first = registration.installing;
    if (!registration.active && first)
      await new Promise((done, fail) => {
        first.addEventListener("statechange", () => (first.state === "activated" ? done() : first.state === "redundant" && fail()));
      });
    return true;
  } catch {
    return false;
  }
}

function startWorker() {
  if (navigator.serviceWorker?.controller) say((said) => said.loading); // else it is fetched first
  worker = new Worker("worker.js", { type: "module" });
  worker.addEventListener("message", ({ data }) => (data.labels ? begin(data) : "isStored" in data ? tellOffline(data) : show(data)));
  worker.addEventListener("error", (event) => show({ error: event.message }));
}

// The model is read first, so that the first answer does not wait for what the next visit needs.
async function tellOffline({ isStored }) {
  isKept = isStored && (await keepForOffline());
  speak();
}

function begin({ labels, seconds }) {
  own = own.map(({ text, label }) => ({ text, label: labels.includes(label) ? label : null })); // another model's may be gone
  byId("type").append(...labels.map((label) => make("option", label, { value: label })));
  document.body.dataset.loadSeconds = seconds;
  isLoaded = true;
  read();
}

// A text that comes while another is read waits, and only the last of them is read.
function read() {
  if (!isLoaded) return; // begin() does it then
  if (asked !== null) return void (isStale = true);
  asked = byId("text").value;
  const words = Object.fromEntries(own.map(({ text, label }) => [text, label]));
  worker.postMessage({ text: asked, options: { words, offsets: "utf16" } });
}

function show({ entities, ms, error }) {
  const text = asked;
  asked = null;
  byId("error").textContent = error ?? "";
  if (!error) {
    const parts = [];
    let last = 0;
    for (const { start, end, label } of entities) {
      const mark = document.createElement("mark");
      mark.append(make("span", text.slice(start, end)), make("small", label));
      mark.style.setProperty("--colour", facts.colours[label]);
      parts.push(text.slice(last, start), mark);
      last = end;
    }
    byId("found").replaceChildren(...parts, text.slice(last));
    byId("json").textContent = JSON.stringify({ text, offsets: "utf16", entities }, null, 1);
    say((said) => (entities.length ? said.count(entities.length, ms < 10 ? ms.toFixed(1) : Math.round(ms)) : said.none));
  }
  if (isStale) {
    isStale = false;
    read();
  }
}

function listWords() {
  kept("cige-words", JSON.stringify(own));
  byId("own").replaceChildren(...own.map(({ text, label }, k) => {
    const item = make("li", label ? `${text} ${label}` : text);
    const remove = make("button", "×", { type: "button" });
    remove.setAttribute("aria-label", `${SAID[language].remove} ${text}`);
    remove.addEventListener("click", () => {
      own.splice(k, 1);
      listWords();
      read();
      byId("word").focus();
    });
    item.append(remove);
    return item;
  }));
}

byId("add").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = byId("word").value.trim(), label = byId("type").value || null;
  byId("word").focus();
  if (!text) return;
  own = [...own.filter((word) => word.text !== text), { text, label }];
  byId("word").value = "";
  listWords();
  read();
});
byId("text").addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(read, WAIT_MS);
});
byId("language").addEventListener("click", () => {
  language = language === "zh" ? "en" : "zh";
  kept("cige-language", language);
  speak();
});
byId("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(byId("json").textContent);
  } catch { // no permission, or no secure context
    getSelection().selectAllChildren(byId("json"));
    document.execCommand("copy");
  }
  byId("status").textContent = SAID[language].copied;
});

speak();
startWorker();
