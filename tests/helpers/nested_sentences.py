"""A grammar of sentences with nested entities, whose rules a model of their characters can learn without errors."""

from __future__ import annotations

import numpy as np

from cige.data.sentence import Sentence, Span

RULES: dict[str, list[str]] = {
    "LOC": ["北京", "上海", "南京", "成都", "武汉", "天津", "长沙", "重庆"],
    "UNI": ["{LOC}大学", "{LOC}师范大学", "{LOC}理工学院"],
    "ORG": ["{UNI}", "{UNI}附属第一医院", "{UNI}附属口腔医院", "{LOC}银行", "{LOC}电力公司"],
    "PER": ["王明", "李红", "张伟", "赵小明", "陈小红", "刘伟"],
    "POST": ["{ORG}校长", "{ORG}院长", "{LOC}市长", "{ORG}经理"],
    "TEXT": [
        "{PER}任{POST}。", "{PER}在{ORG}工作", "{ORG}设在{LOC}", "今天天气很好", "从{LOC}到{LOC}",
        "{POST}{PER}访问{ORG}", "他是{POST}{PER}",
    ],
}  # fmt: skip
LABEL_OF = {"LOC": "LOC", "UNI": "ORG", "ORG": "ORG", "PER": "PER", "POST": "POST"}
WORDS = ["北京", "上海", "南京", "成都", "大学", "师范大学", "学院", "医院", "附属", "银行", "电力", "公司", "校长"]
WORDS += ["院长", "市长", "经理", "今天", "天气", "工作", "访问"]


def sentences(n: int, *, seed: int, broken_share: float = 0.0) -> list[Sentence]:
    """Random sentences of the grammar; an entity that is a single other one, as an ORG that is a UNI, is one entity.

    Args:
        broken_share: share of the sentences with two discontinuous entities.
    """
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(n):
        text, spans = hospitals(rng) if broken_share and rng.random() < broken_share else expand("TEXT", rng)
        made.append(Sentence(text, tuple(sorted(spans))))
    return made


def hospitals(rng: np.random.Generator) -> tuple[str, set[Span]]:
    """北京大学附属第一和口腔医院: two hospitals, which share the first and the last characters of their names."""
    owner, spans = expand("UNI", rng)
    first, second = (str(x) for x in rng.choice(["第一", "第三", "口腔", "人民"], 2, replace=False))
    begin = str(rng.choice(["他去过", "访问", ""]))
    text = f"{begin}{owner}附属{first}和{second}医院" + str(rng.choice(["了", "", "。"]))
    start, middle = len(begin), len(begin + owner + "附属")
    end = middle + len(first + "和" + second + "医院")
    spans = {span.shifted(start) for span in spans}
    spans.add(Span(start, end, "ORG", ((start, middle + 2), (end - 2, end))))
    spans.add(Span(start, end, "ORG", ((start, middle), (middle + 3, end))))
    return text, spans


def expand(name: str, rng: np.random.Generator) -> tuple[str, set[Span]]:
    """The text of a random expansion of a rule, and its entities."""
    text, spans = "", set()
    for piece in str(rng.choice(RULES[name])).replace("{", "|{").replace("}", "}|").split("|"):
        if not piece.startswith("{"):
            text += piece
            continue
        inner, own = expand(piece.strip("{}"), rng)
        spans |= {Span(s.start + len(text), s.end + len(text), s.label) for s in own}
        text += inner
    if name in LABEL_OF:
        spans.add(Span(0, len(text), LABEL_OF[name]))
    return text, spans
