"""web/text.js reads a text as Python does: closed stretches, windows, the normal form and the edges of entities."""

import json
import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest
from web_build import WEB, build

from cige.tagging.edges import trimmed
from cige.tagging.windows import lattice_of, windows_of
from cige.text.closed import closed_stretches

NODE = shutil.which("node") or shutil.which("nodejs")
pytestmark = pytest.mark.skipif(NODE is None, reason="no node (apt-get install nodejs)")

PIECES = (
    *("北京", "長江大橋", "王小明", "𠮷野家", "ＡＢＣ", "Inc.", "U.S.A.", "iPhone 15", "３．１４", "😀"),
    *("👨‍👩‍👧", "1️⃣", "🇨🇳", "\t", " ", "  ", "\u3000", "\r\n", "\n", "\u2028", "\x85", "\x00", "\ufeff"),
    *("\ud800", "\udc00", "\u200b", "\ufffd", "。", "！”", "，", ",", "、", "…", "《", "》", "(", ")", "“"),
    *("”", "'", '"', "*", "**", "`", ".", "-", "@", "＠", "_", "https://zh.wikipedia.org/wiki/北京?x=1"),
    *("www.baidu.com", "t.cn/zQaV", "a.b@pku.edu.cn", "np.zeros()", "MAX_SIZE", "/usr/local/bin"),
    *("C:\\Users\\li", "<br/>", "<!-- x -->", "```\nx\n```", "my_func_1", "@张三", "٣", "é", "ß", "й"),
)  # fmt: skip


def made_texts(n):
    random = Random(7)
    for k in range(n):
        text = "".join(random.choices(PIECES, k=random.randint(0, 12 if k % 10 else 250)))
        # JavaScript cannot hold the two halves of a pair side by side: they are one character there.
        yield text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


@pytest.fixture(scope="module")
def answers():
    texts = ["", *PIECES, *made_texts(400)]
    given = json.dumps({"rules": build.rules(), "texts": texts})  # ASCII: lone surrogates arrive as they are
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
        for window in windows_of(text):
            lattice = lattice_of(text, window, snapshot, closed, rules)
            is_closed = [int(any(a <= k < b for a, b in lattice.closed)) for k in range(lattice.n_chars)]
            expected.append(
                {
                    **{"start": window.start, "end": window.end},
                    **{"coreStart": window.core_start, "coreEnd": window.core_end},
                    **{"codes": [ord(char) for char in lattice.text], "closed": is_closed if lattice.closed else []},
                }
            )
        assert answer["windows"] == expected, text


def test_the_edges_of_entities_are_equal(answers):
    for text, answer in answers:
        stretches = [(a, a + n) for a in range(len(text)) for n in range(1, 7) if a + n <= len(text)]
        expected = [trimmed(text, *stretch) for stretch in stretches]
        assert [found and tuple(found) for found in answer["trimmed"]] == expected, text


@pytest.fixture(scope="module")
def snapshot():
    import tiny

    return tiny.model().lexicon.snapshot()
