"""Multi-digraph: against its equations over an explicit adjacency matrix for each label, and its gazetteers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tiny
import torch
from torch import Tensor

from cige.lattice.lattice import build_lattice
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.names_list import with_gazetteers
from cige.models.build import Vectors, build_tagger, input_tables
from cige.models.model import LatticeModel
from cige.models.multi_digraph import MultiDigraphConfig
from cige.models.trim import trim

SMALL = MultiDigraphConfig(state_width=6, lstm_width=10, embed_dropout_prob=0.0, word_dropout_prob=0.0)
TEXT = "南京市长江大桥，重庆人和药店"
GAZETTEERS = (["南京市", "重庆", "长江大桥"], ["市长", "长江", "江大桥", "无向"], ["从不出现"])


def made(tmp_path=None, **settings) -> LatticeModel:
    """A model whose lexicon is that of `tiny` with three gazetteers, or with none."""
    config = replace(SMALL, **settings)
    if tmp_path is None:
        return tiny.model(config=config, architecture="multi_digraph")
    paths = [tmp_path / f"{k}.txt" for k in range(len(GAZETTEERS))]
    for path, words in zip(paths, GAZETTEERS, strict=True):
        path.write_text("\n".join(words), encoding="utf-8")
    lexicon, groups = with_gazetteers(Lexicon.from_words(tiny.WORDS), paths)
    known = [s.text for s in tiny.sentences(20)]
    vectors = Vectors(
        char=tiny.random_table(sorted({c for text in known for c in text}), 12, seed=1),
        bigram=tiny.random_table(sorted({t[i : i + 2] for t in known for i in range(len(t) - 1)}), 10, seed=2),
        word=tiny.random_table(tiny.WORDS, 8, seed=3),
    )
    lattices = [build_lattice(text, lexicon.snapshot()) for text in known]
    tables = input_tables(lattices, lexicon, vectors, seed=0, word_groups=groups, gazetteers=list(map(str, paths)))
    torch.manual_seed(0)
    tagger = build_tagger(config, tables, tiny.LABELS, architecture="multi_digraph").eval()
    return LatticeModel(
        tagger=tagger,
        vocabulary=tables.vocabulary,
        lexicon=lexicon,
        config=config,
        labels=tiny.LABELS,
        architecture="multi_digraph",
    )


def mentions_of(model: LatticeModel, text: str) -> list[list[tuple[int, int]]]:
    """For each gazetteer, the user's last, the first and last character of each mention."""
    masks, found = model.vocabulary.word_groups, [[] for _ in range(model.vocabulary.n_groups + 1)]
    (lattice,) = model.lattices([text])
    for start, end, word in lattice.words.tolist():
        if word >= len(model.lexicon):
            found[-1].append((start, end - 1))
        else:
            mask = 1 if masks is None else int(masks[word])
            for g in range(model.vocabulary.n_groups):
                if mask >> g & 1:
                    found[g].append((start, end - 1))
    return found


def adjacency(n: int, mentions: list[list[tuple[int, int]]]) -> list[np.ndarray]:
    """A matrix a label, [to, from]: nodes are the characters, all start nodes, all end nodes."""
    n_groups = len(mentions)
    size = n + 2 * n_groups
    before, behind = np.zeros((size, size)), np.zeros((size, size))
    for t in range(n - 1):
        before[t + 1, t] = behind[t, t + 1] = 1
    along, against = [], []
    for g, group in enumerate(mentions):
        start, end = n + g, n + n_groups + g
        matrix = np.zeros((size, size))
        for first, last in group:
            matrix[first, start] = 1
            for t in range(first, last):
                matrix[t + 1, t] = 1
            matrix[end, last] = 1
        along.append(matrix)
        against.append(matrix.T)
    return [before, behind, *along, *against]


def slow_features(model: LatticeModel, text: str) -> Tensor:
    """float[T, lstm_width] of one sentence."""
    encoder, config = model.tagger.encoder, model.config
    batch, _ = model.encode([text])
    mentions = mentions_of(model, text) if config.use_words else []
    chars = encoder.embeddings.char(batch.chars)[0]
    if config.use_bigrams:
        bigrams = encoder.embeddings.bigram(batch.bigrams)[0]
        chars = torch.cat([chars, bigrams], 1)
        if config.backward_bigrams:
            chars = torch.cat([chars, torch.cat([torch.zeros_like(bigrams[:1]), bigrams[:-1]])], 1)
    nodes = [encoder.char_projection(x) for x in chars]
    for side in range(2):
        for g in range(len(mentions)):
            vector = encoder.gazetteers.vectors[side, g]
            if g == len(mentions) - 1:
                vector = vector + encoder.embeddings.word.tuned[2]
            nodes.append(vector @ encoder.gazetteers.weight[g] + encoder.gazetteers.bias[g])
    graph, states = encoder.graph, torch.stack(nodes)
    for _ in range(config.n_steps):
        read = []
        for label, matrix in enumerate(adjacency(len(text), mentions)):
            messages = states @ graph.weight[label] + graph.bias[label]
            read.append(torch.sigmoid(graph.alpha[label]) * torch.from_numpy(matrix).float() @ messages)
        states = graph.cell(torch.cat(read, 1), states)
    return encoder.lstm(states[None, : len(text)], batch.n_chars)[0]


VARIANTS: list[dict] = [{}, {"n_steps": 3}, {"backward_bigrams": False}, {"use_bigrams": False}, {"use_words": False}]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize("lists", [True, False], ids=["gazetteers", "one group"])
@torch.no_grad()
def test_equals_the_equations(variant, lists, tmp_path):
    model = made(tmp_path if lists else None, **variant)
    graph = model.tagger.encoder.graph
    graph.weight.normal_(0, 0.5)
    graph.bias.normal_()
    graph.alpha.normal_()
    model.lexicon.add("药店，重庆", "长江", "人和药店")  # two of them twice: as the lexicon's words and as the user's
    for text in (TEXT, "李", "罕见", "重庆"):
        batch, _ = model.encode([text])
        torch.testing.assert_close(model.tagger.encoder(batch)[0], slow_features(model, text), atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_which_list_a_word_is_in_matters(tmp_path):
    model = made(tmp_path)
    batch, (lattice,) = model.encode(["市长说话"])
    assert batch.word_groups.tolist() == [[0b101]] and lattice.n_words == 1
    before = model.tagger(batch).emissions
    for groups in ([[0b001]], [[0b100]], [[0b011]]):
        other = model.tagger(replace(batch, word_groups=torch.tensor(groups))).emissions
        assert (other - before).abs().max() > 1e-4


@torch.no_grad()
def test_gazetteers_are_saved_loaded_and_trimmed(tmp_path):
    model = made(tmp_path)
    model.lexicon.add("和药")
    before = model.tagger(model.encode([TEXT])[0]).emissions
    model.save(tmp_path / "model")
    again = LatticeModel.load(tmp_path / "model")
    assert again.vocabulary.n_groups == 4 and again.lexicon.user_words == ("和药",)
    np.testing.assert_array_equal(again.vocabulary.word_groups, model.vocabulary.word_groups)
    torch.testing.assert_close(again.tagger(again.encode([TEXT])[0]).emissions, before)

    n_listed = len({word for words in GAZETTEERS for word in words})
    small = trim(model, n_words=n_listed - 1, n_bigrams=10**6)  # the last list loses its only word, but not its place
    assert list(small.lexicon) == list(model.lexicon)[: n_listed - 1] and "无向" in small.lexicon
    assert small.vocabulary.n_groups == 4
    np.testing.assert_array_equal(small.vocabulary.word_groups, model.vocabulary.word_groups[: n_listed - 1])
    everything = trim(model, n_words=10**6, n_bigrams=10**6)
    everything.lexicon.add("和药")
    torch.testing.assert_close(everything.tagger(everything.encode([TEXT])[0]).emissions, before, atol=2e-3, rtol=1e-3)


@torch.no_grad()
def test_shares_of_edges(tmp_path):
    model = made(tmp_path)
    batch, (lattice,) = model.encode([TEXT])
    weights = model.tagger.encoder.read_words(batch)[1][0]
    for k, (start, end, _) in enumerate(lattice.words.tolist()):
        assert set(torch.nonzero(weights[:, k])[:, 0].tolist()) == set(range(start, end))
    assert weights[TEXT.index("，")].sum() == 0
    # All labels count alike at first. 南 has one neighbour, 京 and 市 have two; 南京市 is in a list and in the lexicon.
    places = {(s, e): k for k, (s, e, _) in enumerate(lattice.words.tolist())}
    shares = weights[:, places[0, 3]]
    assert shares[0] == pytest.approx(4 / (4 + 2 + 1)) and shares[1] == pytest.approx(4 / (4 + 2 + 2))


def test_defaults_are_the_released_ones():
    config = MultiDigraphConfig()
    assert (config.state_width, config.n_steps, config.lstm_width, config.n_layers) == (300, 2, 600, 2)
    assert config.use_bigrams and config.backward_bigrams
