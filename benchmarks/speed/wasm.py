"""The browser's form of the bundled model against the native one: entities, seconds to load, milliseconds a text.

In node, the browser's form computes in float32, as the native one does, and in 12-bit numbers, as the page does; scores
may then differ by some ten thousandths. The folder that `python web/build.py` writes is read by node, and its page by
Chromium through Playwright where both are installed. Texts are sentences of the development parts of Weibo, CLUENER and
Resume, and odd ones: emoji, traditional characters, lone surrogates, tabs, addresses, long lines. Each is read with
every option that the browser's form has, and with words of a user's own, every second of them with a label. A text
differs if one form finds a span or label in it that the other lacks, or a score that is further off than LARGEST.

The page is opened from a static server, each time in a browser with an empty cache; then the server is stopped, the
network cut, and the page opened again. The megabytes are those that the server sent on a first visit.
"""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from statistics import median, quantiles
from threading import Thread
from typing import Annotated, Any

from benchmarks.accuracy.parity import differences
from benchmarks.data import tagger, texts_of
from benchmarks.measure import environment, seconds_of
from cige.api import NER
from cige.errors import CigeError
from cige.text.utf16 import utf16_offsets

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "build" / "web"
RUNTIME = "cige.wasm.gz"
SOURCES = ("weibo", "cluener", "resume")
LARGEST = {"float32": 1e-4, "int16": 5e-3}  # differences of scores
ODD = (
    *("", " ", "。", "北", "\n\n\n", "\ufeff北京市", "北京\x00上海", "\ud800北京市\udc00", "北京\ud83d市长"),
    *("😀北京市😀长江大桥👨‍👩‍👧", "𠮷野家在東京開業", "🇨🇳中国队3️⃣比1️⃣胜", "李\u200b雷在北\u200d京"),
    *("ＡＢＣ公司与ｉＰｈｏｎｅ", "臺灣積體電路製造公司在新竹設廠", "馬英九與習近平在新加坡會面"),
    *("國立臺灣大學醫學院附設醫院", "见https://zh.wikipedia.org/wiki/北京?x=张三#上海 和 a.b@pku.edu.cn。"),
    *("www.baidu.com和t.cn/zQaVuHD北京", "张三\t北京大学\t教授\n李四\t清华大学\t讲师"),
    *("姓名：王 小 明　单位：复旦　大学", "北京\r\n上海\u2028广州\x85深圳"),
    *("《人民日报》记者王小明（北京）报道", "“中国移动”和'联通'", "*北京*与**上海**"),
    *("阿里巴巴Inc.与Apple Inc. 合作", "U.S.A.代表", "`pip install cige`在北京", "```\n北京\n```上海"),
    *("<a href='x'>北京</a><!-- 上海 -->", "回复@张三:在/usr/local/bin", "Barack Obama 访问 New York"),
    *("北京,上海、广州;深圳", "12345678901234567890", "一二三四五六七八九十" * 30),
    *("王小明在北京大学读书。" * 40, "李雷和韩梅梅在上海外国语大学读书，" * 40, "南京市长江大桥" * 60),
    *("，" * 700,),
)  # fmt: skip


TABLES = {
    "equality": "entities in WebAssembly and in native code",
    "milliseconds_per_sentence": "milliseconds a sentence of 10 to 100 characters",
    "node": "seconds in node",
    "page_in_chromium": "the page in Chromium",
}


def bench(
    *,
    data_dir: Path,
    folder: Annotated[Path, "what web/build.py wrote"] = FOLDER,
    texts: Annotated[int, "that are read"] = 1000,
    typed: Annotated[int, "texts typed into the page"] = 50,
    visits: Annotated[int, "first visits of the page"] = 5,
) -> dict[str, Any]:
    """Equality, and speed."""
    if not (folder / RUNTIME).is_file():
        raise CigeError(f"{folder}: no build for browsers; run python web/build.py first")
    ner = tagger(precision="float32")
    every = sentences_and_odd(data_dir, texts)
    requests = requests_of(every, ner.labels)
    given = {precision: in_node(folder, every, list(requests.values()), precision) for precision in LARGEST}
    rows = []
    for k, (name, request) in enumerate(requests.items()):
        native, together = [ner(text, **request) for text in every], list(ner.pipe(every, **request))
        for precision, largest in LARGEST.items():
            facts = {"request": name, "precision": precision}
            rows.append(facts | compared(native, given[precision]["found"][k], largest))
            facts["request"] += ", in batches"
            rows.append(facts | compared(together, given[precision]["together"][k], largest))
    sentences = [k for k, text in enumerate(every) if 10 <= len(text) <= 100]
    by_form = {
        f"WebAssembly in node, {name}": [of_form["milliseconds"][k] for k in sentences]
        for name, of_form in given.items()
    }
    by_form["native"] = [1e3 * seconds_of(partial(ner, every[k]))[0] for k in sentences]
    into_page = every[: -len(ODD) : max(1, (texts - len(ODD)) // typed)][:typed]
    version = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip()
    times = ("load_seconds", "load_processor_seconds", "first_seconds")
    return {
        "environment": environment(threads=1, n_rounds=1) | {"node": version},
        "runtime_kilobytes": (folder / RUNTIME).stat().st_size / 1e3,
        "equality": rows,
        "node": [{"precision": name} | {time: of_form[time] for time in times} for name, of_form in given.items()],
        "milliseconds_per_sentence": [{"form": form} | spread(taken) for form, taken in by_form.items()],
        "page_in_chromium": in_chromium(folder, ner, into_page, visits),
    }


def sentences_and_odd(data_dir: Path, n_texts: int) -> list[str]:
    """As many sentences of each source as there is room for beside the odd texts, which come last."""
    found = [texts_of(data_dir, name, "dev") for name in SOURCES]
    room, texts = n_texts - len(ODD), []
    for left, sentences in zip(range(len(found), 0, -1), sorted(found, key=len), strict=True):
        texts += sentences[: room // left]
        room -= min(len(sentences), room // left)
    return [*texts, *ODD]


def some_words(texts: Sequence[str], labels: Sequence[str]) -> dict[str, str | None]:
    """Stretches of the texts as words of a user's own; every second one has a label."""
    random, words = Random(0), {}
    for k, text in enumerate(texts[: -len(ODD) : 5]):
        start = random.randrange(max(1, len(text) - 4))
        word = text[start : start + random.randint(2, 5)]
        if len(word) > 1 and word.isalpha():
            words[word] = random.choice(labels) if k % 2 else None
    return words


def requests_of(texts: Sequence[str], labels: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Options of a call by what a table says of them, with the names that Python has for them."""
    return {
        "as they are": {},
        "coarse types": {"types": "coarse"},
        "three labels": {"labels": ["PER", "LOC", "COMPANY"], "min_score": 0.4},
        "own words": {"words": some_words(texts, labels)},
    }


def in_node(
    folder: Path, texts: Sequence[str], requests: Sequence[Mapping[str, Any]], precision: str
) -> dict[str, Any]:
    """What wasm_worker.mjs finds and measures; raises CigeError where there is no node or it failed."""
    node = shutil.which("node") or shutil.which("nodejs")
    if node is None:
        raise CigeError("no node found; install Node.js 18 or newer (apt-get install nodejs)")
    spelled = [{"minScore" if key == "min_score" else key: value for key, value in r.items()} for r in requests]
    with tempfile.TemporaryDirectory() as given:
        path = Path(given) / "given.json"
        path.write_text(json.dumps({"texts": texts, "requests": spelled, "precision": precision}), encoding="utf-8")
        command = [node, str(HERE / "wasm_worker.mjs"), str(folder), str(path)]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise CigeError(f"wasm_worker.mjs failed: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout)


def compared(
    native: Sequence[Sequence[Any]], found: Sequence[Sequence[Mapping[str, Any]]], largest: float
) -> dict[str, Any]:
    """Counts of texts, of entities that native code finds, of texts that differ; the largest difference of scores."""
    ours = ({(e.start, e.end, e.label, e.text): e.score for e in some} for some in native)
    theirs = ({(e["start"], e["end"], e["label"], e["text"]): e["score"] for e in some} for some in found)
    rows = differences(zip(ours, theirs, strict=True), tolerance=largest)
    return {name: value for name, value in rows.items() if name != "highest_of_one"}


def spread(ms: Sequence[float]) -> dict[str, float]:
    return {"median_ms": median(ms), "p95_ms": quantiles(ms, n=20)[-1], "max_ms": max(ms)}


@contextmanager
def served(folder: Path, sent: list[int]) -> Iterator[str]:
    """The address of a static server of a folder on this machine, which is stopped at the end.

    The bytes of each file that it sends are added to `sent`.
    """

    class Quiet(SimpleHTTPRequestHandler):
        def copyfile(self, source: Any, outputfile: Any) -> None:
            content = source.read()
            sent.append(len(content))
            outputfile.write(content)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def in_chromium(folder: Path, ner: NER, texts: Sequence[str], n_visits: int) -> dict[str, Any] | None:
    """The page in Chromium: seconds to the first answer and entities of texts typed in; None without a browser."""
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        return None
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        return None
    asked: list[str] = []
    sent: list[int] = []
    firsts = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        with served(folder, sent) as address:
            for _ in range(n_visits):  # each in a browser that has nothing in its cache
                sent.clear()
                context = browser.new_context(locale="en-US")
                page = context.new_page()
                page.set_default_timeout(120_000)
                page.on("request", lambda request: asked.append(request.url))
                firsts.append(_opened(page, address))
                page.wait_for_function("() => document.getElementById('offline').textContent")
            native = [ner(text) for text in texts]
            found = [_typed(page, text) for text in texts]
        context.set_offline(True)  # and the server is gone
        again = _opened(page, address)
        offline = [_typed(page, text) for text in texts]
        browser.close()
    strangers = sorted({url for url in asked if not url.startswith((address, "data:"))})
    if strangers:
        raise CigeError(f"the page asked for {strangers[0]}; it should ask for nothing from elsewhere")
    entities = [json.loads(answer["json"])["entities"] for answer in found]
    in_points = [_in_code_points(text, some) for text, some in zip(texts, entities, strict=True)]
    return {
        "megabytes_sent": sum(sent) / 1e6,
        "seconds_to_first_answer": median(firsts),
        "least_seconds_to_first_answer": min(firsts),
        "seconds_to_first_answer_offline": again,
        **compared(native, in_points, LARGEST["int16"]),
        "other_answers_offline": sum(a["json"] != b["json"] for a, b in zip(found, offline, strict=True)),
        **spread([answer["ms"] for answer in offline]),
    }


def _opened(page: Any, address: str) -> float:
    """Seconds from the address to the first answer."""
    start = time.perf_counter()
    page.goto(address)
    page.wait_for_function("() => document.getElementById('json').textContent")
    return time.perf_counter() - start


def _typed(page: Any, text: str) -> dict[str, Any]:
    """The answer's JSON, and milliseconds from the last key to it, with the page's pause after typing left out."""
    return page.evaluate(
        """async (text) => {
          const json = document.getElementById("json"), box = document.getElementById("text");
          json.textContent = "";
          const answered = new Promise((done) => new MutationObserver((_, observer) => {
            if (json.textContent) observer.disconnect(), done(performance.now());
          }).observe(json, { childList: true, characterData: true, subtree: true }));
          box.value = text;
          box.dispatchEvent(new Event("input", { bubbles: true }));
          const start = performance.now(), end = await answered;
          return { json: json.textContent, ms: end - start - 120 };
        }""",
        text,
    )


def _in_code_points(text: str, entities: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    place = {unit: k for k, unit in enumerate(map(utf16_offsets(text), range(len(text) + 1)))}
    return [{**e, "start": place[e["start"]], "end": place[e["end"]]} for e in entities]
