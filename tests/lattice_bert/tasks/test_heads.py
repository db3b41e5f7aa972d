"""Each kind of head: what it reads, that it learns a few examples by heart, and its answers at the edges."""

import random

import numpy as np
import pytest
import tiny_tasks as tiny
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cige.data.sentence import Sentence, Span
from cige.errors import DataError
from cige.lattice_bert.tasks.examples import Answer, ChoiceExample, ReadingExample, TextExample
from cige.lattice_bert.tasks.items import Room, passes
from cige.lattice_bert.tasks.tagging import piece_chain

TEXTS = ["研究生生活很好", "北京大学的学生", "今天天气不好", "他在北京", "我去上海", "小明是研究生", "很好的大学"]


def classification():
    return [TextExample(str(k), text, "很好" if k % 2 else None, "甲乙丙"[k % 3]) for k, text in enumerate(TEXTS)]


def choices():
    idioms = ["北京", "上海", "大学", "研究生"]
    examples = [
        ChoiceExample(str(k), tuple((idiom, f"{text}_很好") for idiom in idioms[: 2 + k % 3]), k % 2, blank=len(text))
        for k, text in enumerate(TEXTS)
    ]
    return examples


def named():
    labels = {"北京大学": "ORG", "北京": "LOC", "上海": "LOC", "小明": "PER"}
    sentences = []
    for text in [*TEXTS, "小明在北京大学2008，小明在上海"]:
        spans: list[Span] = []
        for word, label in labels.items():
            start = text.find(word)
            if start >= 0 and not any(span.start <= start < span.end for span in spans):
                spans.append(Span(start, start + len(word), label))
        sentences.append(Sentence(text, tuple(sorted(spans))))
    return sentences


def segmented():
    lines = ["研究生 生活 很 好", "北京大学 的 学生", "今天 天气 不 好", "他 在 北京", "小明 2008 在 上海"]
    sentences = []
    for line in lines:
        spans, end = [], 0
        for word in line.split():
            spans.append(Span(end, end + len(word), "WORD"))
            end += len(word)
        sentences.append(Sentence(line.replace(" ", ""), tuple(spans)))
    return sentences


def questions():
    context = "小明在北京，我在上海。" + "今天天气很好，" * 12 + "他在大学。"
    return [
        ReadingExample(str(k), f"{who}在哪里？", context, (Answer(text, context.index(text)),))
        for k, (who, text) in enumerate([("小明", "北京"), ("我", "上海"), ("他", "大学")])
    ]


KINDS = {
    "classification": (classification, {}),
    "choice": (choices, {}),
    "entities": (named, {}),
    "entities-crf": (named, {"crf": True}),
    "segmentation": (segmented, {}),
    "segmentation-crf": (segmented, {"crf": True}),
    "reading": (questions, {}),
}


@pytest.mark.parametrize("name", KINDS)
def test_learns_a_few_examples_by_heart(name, one_thread):
    make, settings_ = KINDS[name]
    examples = make()
    model = tiny.tuned(name.partition("-")[0], examples, dropout_prob=0.0, **settings_)
    items = model.items(examples)
    assert all(item.target is not None for item in items)
    optimizer = torch.optim.Adam(model.network.parameters(), lr=4e-3)
    model.network.train()
    scores: dict = {}
    for step in range(160):
        losses = model.network.head.losses(model.network.bert, items)
        assert losses.shape == (len(items),) and losses.isfinite().all()
        losses.mean().backward()
        torch.nn.utils.clip_grad_norm_(model.network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 10 == 9:
            scores = model.score(examples, model.predict(examples))
            if set(scores.values()) == {1.0}:
                break
    assert set(scores.values()) == {1.0}, scores


@pytest.mark.parametrize("name", KINDS)
def test_answers_do_not_depend_on_the_batch(name):
    make, settings_ = KINDS[name]
    examples = make()
    model = tiny.tuned(name.partition("-")[0], examples, **settings_)
    head, bert, items = model.network.head, model.network.bert.eval(), model.items(examples)
    model.network.eval()
    with torch.no_grad():
        together = head.outputs(bert, items)
        alone = [head.outputs(bert, [item])[0] for item in items]
        losses = head.losses(bert, items)
        lonely = torch.cat([head.losses(bert, [item]) for item in items])
    for a, b in zip(together, alone, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, atol=1e-5)
    torch.testing.assert_close(losses, lonely, atol=1e-5, rtol=1e-5)


def test_classification_refuses_a_label_it_does_not_have():
    model = tiny.tuned("classification", classification())
    with pytest.raises(DataError, match="example 3: label '丁' is not one of the 3 that the training data has"):
        model.items([TextExample("3", "天", None, "丁")])


def test_labels_are_in_the_order_of_numbers():
    examples = [TextExample("0", "天", None, label) for label in ("10", "9", "100", "9")]
    assert tiny.tuned("classification", examples).network.head.settings == {"labels": ["9", "10", "100"]}


def test_long_texts_are_cut_to_the_room():
    model = tiny.tuned("classification", classification(), max_pieces=12)
    (item,) = model.items([TextExample("0", "研究生" * 20, "北京大学", "甲")])
    (inputs,) = item.inputs
    assert inputs.n_positions == 12 and inputs.n_cut_second == 0
    model.room = Room(max_tokens=9, max_pieces=40)
    assert model.items([TextExample("0", "研究生" * 20, None, "甲")])[0].n_tokens <= 9


@pytest.mark.parametrize("kind", ["entities", "reading"])
def test_windows_of_a_text_of_many_words_have_room_for_their_tokens(kind):
    text = "北京大学" * 30  # 7 tokens in 4 pieces
    model = tiny.tuned(kind, [])
    model.room = Room(max_tokens=25, max_pieces=40)
    question = ReadingExample("0", "谁", text)
    items = model.items([question if kind == "reading" else Sentence(text)])
    assert all(15 < item.n_tokens <= 25 for item in items[:-1]) and items[-1].n_tokens <= 25
    assert np.unique(np.concatenate([item.pieces.char_starts for item in items])).tolist() == list(range(len(text)))


def test_a_question_of_more_tokens_than_there_is_room_for_leaves_one_piece_of_the_context():
    model = tiny.tuned("reading", [])
    model.room = Room(max_tokens=5, max_pieces=40)
    assert len(model.items([ReadingExample("0", "北京大学", "在上海")])) == 3
    assert model.items([ReadingExample("0", "北京大学", "")]) == []


def test_the_blank_alone_is_masked():
    model = tiny.tuned("choice", [])
    (item,) = model.items([ChoiceExample("0", (("北京", "我_在_上海"), ("上海", "我_在_上海")), 0, blank=3)])
    mask_id, mark = model.pretrained.vocabulary.mask_id, model.pretrained.vocabulary.id("_")
    for inputs in item.inputs:
        (place,) = np.flatnonzero(inputs.ids == mask_id)
        assert inputs.char_starts[place] == 3 and inputs.sides[place] == 1
        assert (inputs.ids == mark).sum() == 1


def test_tags_of_pieces_by_hand():
    model = tiny.tuned("entities", [Sentence("x", (Span(0, 1, "LOC"),))])
    (item,) = model.items([Sentence("在 2008上海ab", (Span(2, 8, "LOC"),))])
    tags = [model.network.head.tags[tag] for tag in item.target]
    # 在, 2008, 上, 海, a, ##b: the span covers one piece of four characters and two of one
    assert tags == ["O", "B-LOC", "M-LOC", "E-LOC", "O", "O"]
    (item,) = model.items([Sentence("在2008上海", (Span(3, 6, "LOC"),))])  # begins inside 2008
    assert [model.network.head.tags[tag] for tag in item.target] == ["O", "O", "S-LOC", "O"]


def test_every_character_is_in_a_word():
    sentences = segmented()
    model = tiny.tuned("segmentation", sentences)
    assert "O" not in model.network.head.tags
    for sentence, spans in zip(sentences, model.predict(sentences), strict=True):
        assert [s.start for s in spans] == [0, *(s.end for s in spans[:-1])]
        assert spans[-1].end == len(sentence.text)


def test_a_long_text_is_tagged_in_windows_that_agree_with_one():
    text = "".join(random.Random(0).choices(TEXTS, k=12))
    wide, narrow = (tiny.tuned("entities", named(), max_pieces=n) for n in (120, 14))
    assert len(wide.items([Sentence(text)])) == 1
    items = narrow.items([Sentence(text)])
    assert len(items) > 5 and max(item.inputs[0].n_positions for item in items) <= 14
    outputs = [np.arange(len(item.pieces.chain))[:, None] + float(item.pieces.char_starts[0]) for item in items]
    chain = piece_chain(items, outputs)
    assert chain.emissions[:, 0].tolist() == list(range(len(text)))  # each piece once, in order
    assert chain.char_starts.tolist() == list(range(len(text)))


@pytest.mark.parametrize("text", ["", " \n", "\u200b"])
def test_texts_without_pieces(text):
    tagger = tiny.tuned("entities", named())
    assert tagger.predict([Sentence(text), Sentence("他在北京")])[0] == []
    reader = tiny.tuned("reading", [])
    nothing = ReadingExample("0", "谁？", text, (Answer("甲", -1),))
    assert reader.predict([nothing, *questions()])[0] == Answer("", -1)
    assert tiny.tuned("classification", classification()).predict([TextExample("0", text)])[0] in "甲乙丙"


def test_where_an_answer_is_in_each_window():
    model = tiny.tuned("reading", [], max_pieces=30)
    example = questions()[2]  # its answer is at the end
    items = model.items([example])
    first, last = items[0], items[-1]
    assert len(items) > 1 and first.target == (0, 0)
    start, end = last.target
    assert example.context[last.pieces.char_starts[start - 1] : last.pieces.char_ends[end - 1]] == "大学"
    lost = ReadingExample("9", "谁？", example.context, (Answer("广州", -1, 5),))
    assert {item.target for item in model.items([lost])} == {None}
    assert {item.target for item in model.items([ReadingExample("9", "谁？", example.context)])} == {None}


@settings(max_examples=25)
@given(st.text("小明在 北京2008，\u3000ab\n", max_size=90), st.text("谁在北京", max_size=20), st.integers(0, 99))
def test_the_best_span_is_never_outside_the_context(context, question, seed):
    model = tiny.tuned("reading", [], max_pieces=30)
    example = ReadingExample("0", question, context)
    items = model.items([example])
    rng = np.random.default_rng(seed)
    outputs = [rng.normal(size=(2, 1 + len(item.pieces.chain))) for item in items]
    answer = model.network.head.answer(example, items, outputs)
    if items:
        assert answer.text and context[answer.start : answer.start + len(answer.text)] == answer.text
    else:
        assert not context.strip() and answer.text == ""


def test_passes_cover_all_items_and_mind_the_budget():
    model = tiny.tuned("choice", [])
    items = model.items(choices())
    found = list(passes(items, max_items=3, max_pairs=3 * 4 * 20**2))
    assert sorted(k for places in found for k in places) == list(range(len(items)))
    assert max(map(len, found)) <= 3
    assert [len(p) for p in passes(items, max_items=9, max_pairs=1)] == [1] * len(items)
