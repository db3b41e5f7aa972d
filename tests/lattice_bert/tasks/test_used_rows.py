from dataclasses import replace

import numpy as np
import tiny_tasks as tiny
import torch

from cige.lattice_bert.encoder.pretrained import add_adapter
from cige.lattice_bert.encoder.word_adapter import WordAdapterConfig
from cige.lattice_bert.tasks.examples import TextExample
from cige.lattice_bert.tasks.tuned import TunedModel, TunedNetwork
from cige.lattice_bert.tasks.used_rows import UsedRows
from cige.lexicon.vectors import VectorTable

EXAMPLES = [TextExample("0", "研究生生活", None, "甲"), TextExample("1", "他在北京", "上海", "乙")]


def test_a_smaller_table_reads_the_same_and_gives_back_what_it_learnt():
    model = tiny.tuned("classification", EXAMPLES)
    bert, head = model.network.eval().bert, model.network.head
    items = model.items(EXAMPLES)
    before = bert.embeddings.tokens.weight.detach().clone()
    with torch.no_grad():
        expected = head.outputs(bert, items)
    used = UsedRows(bert, items)
    n_used = len({int(id) for item in items for one in item.inputs for id in one.ids})
    assert len(bert.embeddings.tokens.weight) == n_used < len(before)
    smaller = used.renumber(items)
    with torch.no_grad():
        found = head.outputs(bert, smaller)
    assert all((a == b).all() for a, b in zip(expected, found, strict=True))
    with torch.no_grad():
        bert.embeddings.tokens.weight += 1
    used.put_back()
    changed = (bert.embeddings.tokens.weight != before).any(1)
    assert changed.nonzero().squeeze(1).tolist() == used.rows.tolist()
    torch.testing.assert_close(bert.embeddings.tokens.weight[used.rows], before[used.rows] + 1)


def test_the_words_of_an_adapter_are_numbered_after_the_pieces():
    vectors = VectorTable(tiny.WORDS, np.random.default_rng(0).normal(size=(len(tiny.WORDS), 6)).astype(np.float32))
    model = with_adapter(tiny.tuned("classification", EXAMPLES), vectors)
    bert, head = model.network.eval().bert, model.network.head
    for examples in (EXAMPLES, [replace(EXAMPLES[0], first="他", second=None)]):  # the second has no words
        items = model.items(examples)
        before = bert.adapter.words.weight.detach().clone()
        with torch.no_grad():
            expected = head.outputs(bert, items)
        used = UsedRows(bert, items)
        with torch.no_grad():
            found = head.outputs(bert, used.renumber(items))
        assert all((a == b).all() for a, b in zip(expected, found, strict=True))
        n_pieces = model.pretrained.vocabulary.n_pieces
        words = used.rows[used.rows >= n_pieces] - n_pieces
        assert len(bert.adapter.words.weight) == max(1, len(words)) < len(before)
        with torch.no_grad():
            bert.adapter.words.weight += 1
        used.put_back()
        changed = (bert.adapter.words.weight != before).any(1).nonzero().squeeze(1).tolist()
        assert changed == (words.tolist() or [0])
        with torch.no_grad():
            bert.adapter.words.weight.copy_(before)


def with_adapter(model: TunedModel, vectors: VectorTable) -> TunedModel:
    config = WordAdapterConfig(n_words=99, word_width=6)
    pretrained = add_adapter(tiny.pretrained(words=[]), vectors, config)
    with torch.no_grad():
        for weight in pretrained.bert.adapter.adapter.parameters():
            weight.normal_(std=0.5)
    return replace(model, network=TunedNetwork(pretrained.bert, model.network.head), pretrained=pretrained)
