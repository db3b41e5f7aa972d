"""web/text.js reads a text as Python does: closed stretches, windows, the normal form and the edges of entities."""

import json
import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest
from web_build import WEB, build

from cige.entities.label_facts import LabelFacts
from cige.tagging.edges import trimmed, with_whole_edges
from cige.tagging.prediction_model import ScoredSpan
from cige.tagging.windows import read_window, windows_of
from cige.text.closed import closed_stretches

NODE = shutil.which("node") or shutil.which("nodejs")
pytestmark = pytest.mark.skipif(NODE is None, reason="no node (apt-get install nodejs)")

PIECES = (
    *("北京", "長江大橋", "王小明", "𠮷野家", "ＡＢＣ", "Inc.", "U.S.A.", "iPhone 15", "３．１４", "😀"),
    *("👨‍👩‍👧", "1️⃣", "🇨🇳", "\t", " ", "  ", "\u3000", "\r\n", "\n", "\u2028", "\x85", "\x00", "\ufeff"),
    *("\ud800", "\udc00", "\u200b", "\ufffd", "。", "！”", "，", ",", "、", "…", "《", "》", "(", ")", "（", "）", "“"),
    *("”", "'", '"', "*", "**", "`", ".", "-", "@", "＠", "_", "https://zh.wikipedia.org/wiki/北京?x=1"),
    *("www.baidu.com", "t.cn/zQaV", "a.b@pku.edu.cn", "np.zeros()", "MAX_SIZE", "/usr/local/bin"),
    *("C:\\Users\\li", "<br/>", "<!-- x -->", "```\nx\n```", "my_func_1", "@张三", "٣", "é", "ß", "й"),
)  # fmt: skip

LINE_PIECES = ("天地玄黄", "宇宙", "𠮷", "1", "a", "/", "，", "、", "：", ":", ",", "。", "！”", "；", "…", "《", "》")

FACTS = LabelFacts(set_apart=12, wide_commas=True)


def made_texts(n):
    random = Random(7)
    for k in range(n):
        text = "".join(random.choices(PIECES, k=random.randint(0, 12 if k % 10 else 250)))
        # JavaScript cannot hold the two halves of a pair side by side: they are one character there.
        yield text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def made_lines(n):
    """Lines that are longer than a window, each with few kinds of marks, so that all kinds of cuts are made."""
    yield from ("天" * k + "12:30" + "地" * 99 for k in range(100, 112))
    random = Random(8)
    for _ in range(n):
        marks, n_plain = random.sample(LINE_PIECES, 6), random.choice((0, 6, 100))
        yield "".join(random.choices([*marks, *n_plain * ["洪荒"]], k=random.randint(201, 300)))


@pytest.fixture(scope="module")
def answers():
    texts = ["", *PIECES, *made_texts(400), *made_lines(100)]
    given = json.dumps(
        {"rules": build.rules(), "texts": texts, "facts": FACTS.to_manifest()}
    )  # ASCII: lone surrogates arrive as they are
    command = [NODE, Path(__file__).with_name("read_texts.mjs"), WEB / "text.js"]
    done = subprocess.run(command, input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return list(zip(texts, json.loads(done.stdout), strict=True))


def test_code_points_lead_back_to_the_text(answers):
    assert all(answer["back"] == text for text, answer in answers)


def test_closed_stretches_are_equal(answers):
    assert sum(len(answer["closed"]) for _, answer in answers) > 1000
    for text, answer in answers:
        assert [tuple(stretch) for stretch in answer["closed"]] == closed_stretches(text), text


def test_windows_and_what_is_read_in_them_are_equal(answers, snapshot):
    assert sum(len(answer["windows"]) > 2 for _, answer in answers) > 20
    for text, answer in answers:
        closed, rules = closed_stretches(text), snapshot.rules(text)
        expected = []
        for window in windows_of(text, FACTS):
            lattice = read_window(text, window, snapshot, closed, rules).lattice
            expected.append({**offsets(window), "codes": list(map(ord, lattice.text)), "closed": is_closed(lattice)})
        found = [{name: x for name, x in window.items() if name != "model"} for window in answer["windows"]]
        assert found == expected, text


def test_what_a_model_reads_is_equal(answers, snapshot):
    n_apart = n_wide = 0
    for text, answer in answers:
        closed, rules = closed_stretches(text), snapshot.rules(text)
        for window, given in zip(windows_of(text, FACTS), answer["windows"], strict=True):
            part = read_window(text, window, snapshot, closed, rules, FACTS)
            found = given["model"]
            assert found["window"] == offsets(part.window), text
            assert found["codes"] == list(map(ord, part.lattice.text)), text
            assert found["isClosed"] == is_closed(part.lattice), text
            shift = window.start - part.window.start
            assert found["words"] == [[shift, shift + 1, 7]]
            n_apart, n_wide = (
                n_apart + shift,
                n_wide + (found["codes"][shift:][: len(given["codes"])] != given["codes"]),
            )
    assert n_apart > 20 and n_wide >= 10


def offsets(window):
    core = {"coreStart": window.core_start, "coreEnd": window.core_end}
    return {"start": window.start, "end": window.end, **core, "isShortCell": window.is_short_cell}


def is_closed(lattice):
    return [int(any(a <= k < b for a, b in lattice.closed)) for k in range(lattice.n_chars)] if lattice.closed else []


def test_the_edges_of_entities_are_equal(answers):
    for text, answer in answers:
        stretches = [(a, a + n) for a in range(len(text)) for n in range(1, 7) if a + n <= len(text)]
        expected = [trimmed(text, *stretch) for stretch in stretches]
        assert [found and tuple(found) for found in answer["trimmed"]] == expected, text


def test_latin_words_and_brackets_are_completed_alike(answers):
    n_moved = 0
    for text, answer in answers:
        spans = [
            ScoredSpan(k, min(k + 2 + k % 2, len(text)), "X", (k * 7 % 11) / 11) for k in range(0, len(text), 3)
        ]  # as read_texts.mjs makes them
        whole = [(span.start, span.end) for span in with_whole_edges(text, spans)]
        assert [tuple(span) for span in answer["whole"]] == whole, text
        n_moved += len(whole) < len(spans)
    assert n_moved > 100


@pytest.fixture(scope="module")
def snapshot():
    import tiny

    return tiny.model().lexicon.snapshot()
