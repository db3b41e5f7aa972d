"""Labels of data that a model does not know: the option --labels to paste, with a proposal for each by its name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from cige.errors import DataError

if TYPE_CHECKING:
    from cige.data.sentence import Sentence
    from cige.tagging.finder import EntityFinder

# The names of labels in data sets, in lower case without other characters than letters, and the labels of models that
# mean the same, the best first; the first one that the model has is proposed.
_NAMES_OF: dict[tuple[str, ...], str] = {
    ("PER",): "per person people personname name nr human author pernam 人 人名 人物 姓名",
    ("PER_NOM", "PER"): "pernom 称呼",
    ("LOC",): "loc location address place gpe gpenam locnam ns city country province area region 地名 地点 地址 位置",
    ("LOC_NOM", "LOC"): "locnom gpenom",
    ("SCENE", "LOC"): "scene scenery spot landmark fac facility 景点 景区",
    ("ORG",): "org organization organisation institution orgnam nt agency team 机构 组织 机构名 组织机构",
    ("ORG_NOM", "ORG"): "orgnom",
    ("COMPANY", "ORG"): "company corporation enterprise firm corp 公司 企业",
    ("GOVERNMENT", "ORG"): "government gov department 政府 政府机构 部门",
    ("TIME",): "time date datetime t 时间 日期",
    ("POSITION",): "position title job occupation ofi 职位 职务 职业 头衔",
    ("PRODUCT",): "product goods item hc hccx commodity prod 产品 商品",
    ("BRAND",): "brand hp hppx 品牌",
    ("MEDICINE", "DRUG", "PRODUCT"): "medicine drug drugs med medication 药品 药物 药",
    ("MOVIE", "VIDEO"): "movie film television tv video show 电影 影视 电视剧",
    ("BOOK",): "book books novel workofart 书 书名 书籍 小说",
    ("SONG",): "song music 歌曲 音乐",
    ("GAME",): "game games 游戏",
}
_LABELS_OF = {name: labels for labels, names in _NAMES_OF.items() for name in names.split()}


def propose(data_labels: Iterable[str], model_labels: Iterable[str]) -> dict[str, str]:
    """The label of the model for each label of the data that the model does not have, by name; others are left out."""
    known = set(model_labels)
    by_name = {_plain(label): label for label in sorted(known)}
    proposals = {}
    for label in sorted(set(data_labels) - known):
        candidates = (by_name.get(_plain(label)), *_LABELS_OF.get(_plain(label), ()))
        known_label = next((candidate for candidate in candidates if candidate in known), None)
        if known_label is not None:
            proposals[label] = known_label
    return proposals


def labels_option(mapping: Mapping[str, str]) -> str:
    """`--labels a=B c=D` as it is typed in a shell."""
    return "--labels " + " ".join(shlex.quote(f"{source}={target}") for source, target in mapping.items())


def check_labels(
    finder: EntityFinder,
    sentences: Sequence[Sentence],
    mapping: Mapping[str, str],
    path: str,
    *,
    types: str = "fine",
    word_labels: Collection[str] = (),
) -> None:
    """Raise a DataError, with the option to add, if neither the model nor a word has a label of the data.

    `word_labels` are the labels of the words with which the data is read.
    """
    from cige.tagging.selection import Request, select

    known = set(finder.labels)
    if types == "coarse":
        known = set(select(Request.of(types="coarse"), finder.labels, finder.label_facts).families)
    labels = {span.label for sentence in sentences for span in sentence.spans}
    unknown = sorted(label for label in labels - known - {*word_labels} if label not in mapping)
    if not unknown:
        return
    proposals = propose(unknown, known)
    option = labels_option({**mapping, **{label: proposals.get(label, "") for label in unknown}})
    raise DataError(
        f"no label of the model for {', '.join(unknown)} of {path}; the model has {', '.join(sorted(known))}. "
        f"Proposal: {option}    (NAME= leaves the label NAME out)"
    )


def _plain(label: str) -> str:
    return re.sub(r"[\W_\d]", "", label).lower()
