"""The bundled model: small, whole, and right on sentences that nobody tuned to."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import cige
from benchmarks.accuracy import tables
from cige.api import NER
from cige.data.names_of_model import names_of
from cige.data.registry import load_split
from cige.folders.hub import BUNDLED, RESEARCH

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def ner() -> NER:
    return cige.load()


def test_it_fits_in_48_megabytes_and_has_a_card():
    files = [file for file in BUNDLED.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) <= 48_000_000
    card = (BUNDLED / "MODEL_CARD.md").read_text(encoding="utf-8")
    for word in ("Apache-2.0", "No person has checked", "seed", "F1", "cige train today_student"):
        assert word in card


def test_its_labels(ner):
    types = {"PER", "LOC", "SCENE", "ORG", "COMPANY", "GOVERNMENT", "TIME", "PRODUCT", "BRAND", "MEDICINE"}
    assert set(ner.labels) == types | {"GAME", "BOOK", "VIDEO", "SONG"}
    assert not ner.label_facts.silent
    assert ner.label_facts.coarse_labels == {"PER", "LOC", "ORG", "TIME"}
    assert set(ner.label_facts.calibration) == {"fine", "coarse"}
    assert [run["seed"] for run in ner.model.facts["mean_of"]] == [41, 42]


def test_the_other_model_of_the_package_is_whole_and_has_its_own_card():
    files = [file for file in RESEARCH.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) <= 48_000_000
    assert "none stated" in (RESEARCH / "MODEL_CARD.md").read_text(encoding="utf-8")
    research = cige.load("research")
    assert {"POSITION", "MOVIE", "PER_NOM"} <= set(research.labels)
    assert [(e.text, e.label) for e in research("王毅在北京")] == [("王毅", "PER"), ("北京", "LOC")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("普京访问中国", [("普京", "PER"), ("中国", "LOC")]),
        ("普京", [("普京", "PER")]),
        ("阿莫西林怎么吃", [("阿莫西林", "MEDICINE")]),
        ("医生给他开了布洛芬", [("布洛芬", "MEDICINE")]),
        ("我用ChatGPT写作业", [("ChatGPT", "PRODUCT")]),
        ("iPhone 15 Pro好用吗", [("iPhone 15 Pro", "PRODUCT")]),
        ("在抖音和淘宝上买", [("抖音", "PRODUCT"), ("淘宝", "PRODUCT")]),
        ("詹姆斯空砍40分", [("詹姆斯", "PER")]),
        ("国民党主席朱立伦", [("国民党", "ORG"), ("朱立伦", "PER")]),
        ("阿里巴巴总部在杭州", [("阿里巴巴", "COMPANY"), ("杭州", "LOC")]),
        ("公司规定奥运会期间放假", []),
        ("电话62345678", []),
    ],
)
def test_what_people_type_first(ner, text, expected):
    assert [(e.text, e.label) for e in ner(text)] == expected


def test_it_has_a_list_of_names_with_version_and_date(ner):
    names = names_of(ner.model.vocabulary, ner.lexicon)
    assert len(names) > 100_000 and "MEDICINE/curated" in names.kinds["阿莫西林"]
    assert {"version", "date"} <= set(ner.model.facts["names"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("王毅在北京会见法国外长", {("王毅", "PER"), ("北京", "LOC"), ("法国", "LOC")}),
        ("清华大学校长昨天访问了上海。", {("清华大学", "ORG"), ("上海", "LOC")}),
        ("李娜出生于湖北省武汉市。", {("李娜", "PER"), ("湖北省", "LOC"), ("武汉市", "LOC")}),
        ("华为和字节跳动都在招人。", {("华为", "ORG"), ("字节跳动", "ORG")}),
        ("今天天气很好，我们去散步。", set()),
    ],
)
def test_plain_sentences(ner, text, expected):
    assert {(e.text, e.label) for e in ner(text, types="coarse", labels=["PER", "LOC", "ORG"])} == expected


def test_traditional_text_is_read_as_simplified(ner):
    names = ["PER", "LOC", "ORG"]
    found = ner("台灣總統陳水扁昨天在台北會見了國立台灣大學教授張曉風。", labels=names)
    assert [e.text for e in found] == ["台灣", "陳水扁", "台北", "國立台灣大學", "張曉風"]
    simplified = ner("台湾总统陈水扁昨天在台北会见了国立台湾大学教授张晓风。", labels=names)
    assert [(e.start, e.end, e.label) for e in found] == [(e.start, e.end, e.label) for e in simplified]


def test_the_example_paragraph_as_make_ner_reads_it(ner):
    text = (ROOT / "examples" / "news.txt").read_text(encoding="utf-8").strip()
    found = {(e.text, e.label) for e in ner(text)}
    assert {("陈思远", "PER"), ("浦东新区", "LOC"), ("林晓岚", "PER"), ("巴塞尔", "LOC")} <= found


def test_a_users_word_is_heard(ner):
    """A name that the context leaves open: listing it must raise its probability, unlisting it must undo that."""
    text = "昨天阿拉善贺兰草宣布了新的计划。"

    def probability() -> float:
        return max((e.score for e in ner(text) if e.text == "阿拉善贺兰草"), default=0.0)

    before = probability()
    ner.lexicon.add("阿拉善贺兰草")
    after = probability()
    ner.lexicon.remove("阿拉善贺兰草")
    assert after > before + 0.3
    assert probability() == pytest.approx(before)


def test_a_prediction_process_stays_small():
    """Peak memory of one `cige predict` under 600 MB (ru_maxrss would count this process too, across the fork)."""
    if not sys.platform.startswith("linux"):
        pytest.skip("/proc is Linux's")
    code = (
        "import re, sys; from cige.cli import main; main(['predict', sys.argv[1], '--format', 'jsonl']); "
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read()).group(1))"
    )
    path = ROOT / "examples" / "news.txt"
    out = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True).stdout
    lines = out.splitlines()
    assert json.loads(lines[0])["entities"]
    assert int(lines[-1]) < 600_000


@pytest.mark.parametrize("name", tables.SETS)
def test_tables_give_as_many_right_entities_with_tabs_and_spaces_as_with_commas(ner, name, shared_data):
    cells = tables.cells_of(load_split(name, "dev", data_dir=shared_data), tables.SETS[name])
    found = {row["separator"]: row["right"] for row in tables.rows_of(ner, tables.made_rows(cells, 240))}
    most = max(found["，"], found[","])
    for separator in ("tab", "two spaces", "four spaces", "two wide spaces", "aligned columns"):
        assert found[separator] >= 0.98 * most, found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("张三\t李四\t北京", ["张三", "李四", "北京"]),
        ("@王毅 今天在北京", ["王毅", "北京"]),
        ("王毅😀在北京😀见http://beijing.cn/王毅", ["王毅", "北京"]),
        ("请写信给wangyi@beijing.com，或看`王毅 = 北京`。", []),
    ],
)
def test_text_as_it_comes(ner, text, expected):
    assert [e.text for e in ner(text, labels=["PER", "LOC", "ORG"])] == expected


@pytest.mark.parametrize("n_copies", [1, 11, 17, 40])
def test_places_repeated_without_marks_are_found_one_by_one(ner, n_copies):
    found = ner("北京市海淀区" * n_copies)
    assert [(e.text, e.label) for e in found] == [("北京市", "LOC"), ("海淀区", "LOC")] * n_copies


@pytest.mark.parametrize("n_copies", [1, 11, 17, 33])  # up to the characters of a window
def test_the_research_model_cuts_a_repeated_name_at_its_places(n_copies):
    research = cige.load("research")
    found = research("北京市海淀区" * n_copies)
    assert all(len(e.text) <= research.label_facts.max_lengths[e.label] for e in found)
    assert {e.label for e in found} <= {"LOC", "GOVERNMENT"}
    assert "".join(e.text for e in found) == "北京市海淀区" * n_copies
    assert all(e.start % 6 == 0 for e in found)


def test_a_model_may_be_pickled():
    ner = cige.load()
    ner.lexicon.add("阿拉善贺兰草", label="COMPANY")
    text = "昨天阿拉善贺兰草宣布了新的计划。"
    data = pickle.dumps(ner)
    assert pickle.loads(data)(text) == ner(text) and len(data) < 100_000


def test_what_a_notebook_and_repr_show():
    ner = cige.load()
    assert repr(ner).startswith(
        f"<NER: flat (NativeModel, {ner.model.precision}); 268,430 words; finds "
    ) and "_NOM" not in repr(ner)
    ner.lexicon.add("阿拉善贺兰草")
    assert "1 of your own" in repr(ner)
    assert type(ner("李明在北京。")) is list
    page = ner.analyze("李明在北京<script>。")._repr_html_()
    assert "李明<sub" in page and "&lt;script&gt;" in page and "2 entities" in page
    assert ner.explain("李明在北京。", removals=False)._repr_html_().startswith("<svg")
