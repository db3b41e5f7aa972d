"""Tagger: emissions, loss and decoding over any encoder."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tiny
import torch
from torch import nn

from cige.data.batch import LatticeBatch, collate
from cige.data.tags import illegal_transitions, spans_to_tags, tag_set, tags_to_spans
from cige.entities.scores import score
from cige.models.model import LatticeModel
from cige.models.tagger import Tagger

TAGS = tag_set(["PER"], "BMES")


class Codes(nn.Module):
    """An encoder that any model file could be: one-hot rows of the characters."""

    out_width = 8

    def forward(self, batch: LatticeBatch) -> torch.Tensor:
        return nn.functional.one_hot(batch.chars, self.out_width).float()


def made(**options) -> Tagger:
    torch.manual_seed(0)
    return Tagger(encoder=Codes(), tags=TAGS, output_dropout_prob=options.pop("output_dropout_prob", 0.0), **options)


def batch_of(*rows: list[int], tags: bool = True) -> LatticeBatch:
    n = max(map(len, rows))
    chars = torch.tensor([row + [0] * (n - len(row)) for row in rows])
    nothing = torch.zeros(len(rows), 1, dtype=torch.long)
    return LatticeBatch(
        chars=chars, bigrams=chars, n_chars=torch.tensor([len(row) for row in rows]), words=nothing,
        word_starts=nothing, word_ends=nothing, word_counts=nothing, word_groups=nothing,
        n_words=nothing[:, 0], texts=tuple("x" * len(row) for row in rows),
        tags=torch.zeros_like(chars) if tags else None,
    )  # fmt: skip


def test_output_holds_a_score_for_each_tag_and_the_mask():
    out = made()(batch_of([3, 4, 5], [6]))
    assert out.emissions.shape == (2, 3, len(TAGS))
    assert out.mask.tolist() == [[True, True, True], [True, False, False]]


def test_loss_is_the_mean_over_sentences_of_the_negative_log_probability():
    tagger, batch = made(), batch_of([3, 4, 5], [6, 7])
    emissions = tagger(batch).emissions
    each = tagger.crf.negative_log_likelihood(emissions, batch.tags, batch.n_chars)
    assert each.shape == (2,) and tagger.loss(batch).item() == pytest.approx(each.mean().item())
    apart = [tagger.loss(batch_of(row)).item() for row in ([3, 4, 5], [6, 7])]
    assert tagger.loss(batch).item() == pytest.approx(sum(apart) / 2, abs=1e-5)


def test_loss_without_tags_is_refused():
    with pytest.raises(ValueError, match="gold tags"):
        made().loss(batch_of([3], tags=False))


def test_decoding_is_legal_with_constraints_only():
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 8, int(rng.integers(1, 9))).tolist() for _ in range(40)]
    illegal = {}
    for constrained in (True, False):
        tagger = made(constrained=constrained)
        tagger.output.weight.data.mul_(10)
        paths = tagger.decode(batch_of(*rows))
        assert [len(path) for path in paths] == [len(row) for row in rows]
        illegal[constrained] = sum(len(illegal_transitions([TAGS[k] for k in path], "BMES")) > 0 for path in paths)
    assert illegal[True] == 0 and illegal[False] > 10


def test_dropout_before_the_scores_is_for_training_only():
    tagger, batch = made(output_dropout_prob=0.5), batch_of([3, 4, 5])
    assert not torch.equal(tagger(batch).emissions, tagger(batch).emissions)
    tagger.eval()
    assert torch.equal(tagger(batch).emissions, tagger(batch).emissions)


def test_boundary_scores_may_be_left_out():
    assert made().crf.start.requires_grad
    assert not made(boundary_scores=False).crf.start.requires_grad


def predicted(model: LatticeModel, texts: list[str]) -> list[list]:
    batch, _ = model.encode(texts)
    return [tags_to_spans([model.tagger.tags[k] for k in path], model.scheme) for path in model.tagger.decode(batch)]


@pytest.mark.parametrize(
    ("scheme", "settings"), [("BMES", {}), ("BIO", {}), ("BMES", {"n_layers": 2}), ("BMES", {"use_words": False})]
)
def test_twenty_sentences_are_learnt_by_heart(scheme, settings):
    model = tiny.model(scheme=scheme, config=replace(tiny.CONFIG, embed_dropout_prob=0.0, **settings))
    known = tiny.sentences(20, seed=5)
    texts, gold = [s.text for s in known], [list(s.spans) for s in known]
    ids = {tag: k for k, tag in enumerate(model.tagger.tags)}
    tags = [np.array([ids[t] for t in spans_to_tags(len(s.text), s.spans, scheme)]) for s in known]
    batch = collate([model.vocabulary.encode(x) for x in model.lattices(texts)], tags)
    assert score(gold, predicted(model, texts)).f1 < 0.5
    optimizer = torch.optim.Adam(model.tagger.parameters(), lr=0.02)
    model.tagger.train()
    for _ in range(40):
        optimizer.zero_grad()
        model.tagger.loss(batch).backward()
        optimizer.step()
    model.tagger.eval()
    assert score(gold, predicted(model, texts)).f1 == 1.0
