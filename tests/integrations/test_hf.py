"""The pipeline beside the real one of Transformers, on a tiny BERT of random weights."""

from __future__ import annotations

import pytest

from cige import Entity, load
from cige.errors import CigeError
from cige.integrations import hf
from cige.text.windows import OVERLAP

TEXT = "罗氏公司总裁林晓岚从巴塞尔飞抵南京市长江大桥。"


@pytest.fixture(scope="module")
def find():
    return hf.pipeline()


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """transformers.pipeline with a network that tags at random."""
    import torch
    from transformers import BertConfig, BertForTokenClassification, BertTokenizerFast, pipeline

    folder = tmp_path_factory.mktemp("bert")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(set(TEXT))]
    (folder / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    tokenizer = BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=32)
    labels = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(pieces), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        num_labels=5, id2label=dict(enumerate(labels)), label2id={x: k for k, x in enumerate(labels)},
    )  # fmt: skip
    model = BertForTokenClassification(config).eval()
    return pipeline("token-classification", model=model, tokenizer=tokenizer)


def kinds(value):
    """The shape of an answer: lists, and the keys of dicts with how their values compare with numbers and strings."""
    if isinstance(value, dict):
        return {name: str if isinstance(x, str) else "number" for name, x in value.items()}
    return [kinds(value[0])] if value else []


@pytest.mark.parametrize("options", [{}, {"aggregation_strategy": "simple"}, {"aggregation_strategy": "max"}])
@pytest.mark.parametrize("inputs", [TEXT, [TEXT, TEXT]], ids=["one", "two"])
def test_the_shape_of_the_answer_is_theirs(find, theirs, inputs, options):
    own, other = find(inputs, **options), theirs(inputs, **options)
    assert other and other[0], "the network of random weights should find something"
    assert kinds(own) == kinds(other)
    assert len(own) == len(other) or isinstance(inputs, str)


def test_an_iterator_is_answered_as_it_comes(find, theirs):
    for answers in (find((TEXT for _ in range(3)), batch_size=1), theirs(TEXT for _ in range(3))):
        assert not isinstance(answers, list) and len(list(answers)) == 3


def test_entities_are_those_of_the_model(find):
    ner = load()
    expected = [(e.label, e.score, e.text, e.start, e.end) for e in ner(TEXT)]
    found = find(TEXT, aggregation_strategy="simple")
    assert [tuple(x.values()) for x in found] == expected and found[0]["word"] == "罗氏公司"
    assert hf.pipeline(model=ner, aggregation_strategy="first")([TEXT])[0] == found


def test_it_is_called_with_the_task_and_the_model_as_theirs(find):
    ner = load()
    for given in (hf.pipeline("ner", ner), hf.pipeline("token-classification", model=ner), hf.pipeline(task="ner")):
        assert given(TEXT) == find(TEXT)
    for task in ("text-classification", ner):
        with pytest.raises(CigeError, match=r"expected one of token-classification, ner; give a model as model="):
            hf.pipeline(task)


def test_characters_have_tags_and_offsets(find):
    first, second = find("在北京。")
    assert (first["entity"], second["entity"]) == ("B-LOC", "I-LOC")
    assert (first["word"], first["index"], first["start"], first["end"]) == ("北", 2, 1, 2)
    assert [x["word"] for x in find("在北京。", ignore_labels=["B-LOC"])] == ["京"]
    assert find("在北京。", aggregation_strategy="simple", ignore_labels=["LOC"]) == []


def test_entities_with_gaps_have_the_offsets_of_their_parts(find, monkeypatch):
    broken = Entity(1, 8, "ORG", "第一医院", 0.9, parts=((1, 3), (6, 8)))
    monkeypatch.setattr(find.finder, "pipe", lambda texts, **_: ([broken] for _ in texts))
    text = "去第一和口腔医院"
    found = find(text)
    assert [(x["entity"], x["word"], x["start"], x["index"]) for x in found] == [
        ("B-ORG", "第", 1, 2),
        ("I-ORG", "一", 2, 3),
        ("I-ORG", "医", 6, 7),
        ("I-ORG", "院", 7, 8),
    ]
    assert all(text[x["start"] : x["end"]] == x["word"] for x in found)
    (group,) = find(text, aggregation_strategy="simple")
    assert (group["start"], group["end"], group["word"], group["parts"]) == (1, 8, "第一医院", [[1, 3], [6, 8]])


def test_long_texts_are_read_whole_with_any_stride(find):
    long = "今天天气很好，" * 100 + "李明在北京。"
    found = find(long, aggregation_strategy="simple", stride=16)
    assert [long[x["start"] : x["end"]] for x in found][-2:] == ["李明", "北京"]
    without = find(long, aggregation_strategy="simple")
    assert [x | {"score": 0} for x in found] == [x | {"score": 0} for x in without]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"aggregation_strategy": "sum"}, "expected one of none, simple"),
        ({"stride": 3}, "other than 'none'"),
        ({"stride": 999, "aggregation_strategy": "simple"}, f"from 0 to {OVERLAP}"),
        ({"top_k": 3}, "no option top_k"),
        ({"ignore_labels": "O"}, "expected a list"),
        ({"batch_size": 0}, "of at least 1"),
    ],
)
def test_wrong_options_are_refused(find, options, message):
    with pytest.raises(CigeError, match=message):
        find(TEXT, **options)


def test_what_is_no_text_is_refused(find):
    with pytest.raises(TypeError, match="expected a str or an iterable"):
        find(3)
    with pytest.raises(TypeError):
        find([b"bytes"])
