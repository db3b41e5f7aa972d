"""The CRF against brute force over every tag sequence."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch

from cige.data.tags import allowed_transitions, tag_set
from cige.nn.crf import CRF


def random_crf(n_tags: int, allowed=None, seed: int = 0) -> CRF:
    torch.manual_seed(seed)
    crf = CRF(n_tags=n_tags, allowed=allowed)
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    return crf


def all_scores(crf: CRF, emissions: torch.Tensor) -> dict[tuple[int, ...], float]:
    """Score of every sequence over one sentence float[T, L]."""
    start, transitions, end = (x.detach().double() for x in crf.scores())
    out = {}
    for path in product(range(emissions.shape[1]), repeat=len(emissions)):
        total = start[path[0]] + end[path[-1]] + sum(emissions[t, tag].double() for t, tag in enumerate(path))
        total = total + sum(transitions[a, b] for a, b in pairwise(path))
        out[path] = float(total)
    return out


TAGS = tag_set(["X"])
SEGMENTING = TAGS[1:]  # word segmentation: every character is in a word, so there is no O
CASES = {
    "free": (TAGS, None),
    "constrained": (TAGS, allowed_transitions(TAGS)),
    "no O": (SEGMENTING, allowed_transitions(SEGMENTING)),
}
every_case = pytest.mark.parametrize(("names", "allowed"), CASES.values(), ids=CASES)


def random_legal(crf: CRF, emissions: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """int64[B, T]: for each sentence a legal sequence, a different one for each; beyond its end tag 0, as trained."""
    tags = torch.zeros(emissions.shape[:2], dtype=torch.long)
    for b, n in enumerate(lengths.tolist()):
        legal = [path for path, value in all_scores(crf, emissions[b, :n]).items() if np.isfinite(value)]
        tags[b, :n] = torch.tensor(legal[(7 * b + 3) % len(legal)])
    return tags


@every_case
def test_partition_and_best_path_equal_brute_force(names, allowed):
    crf = random_crf(len(names), allowed)
    lengths = torch.tensor([4, 1, 3])
    emissions = torch.randn(3, 4, len(names)) * 2
    log_z = crf.log_partition(emissions, lengths)
    paths = crf.decode(emissions, lengths)
    for b, n in enumerate(lengths.tolist()):
        scores = all_scores(crf, emissions[b, :n])
        values = np.array(list(scores.values()))
        expected = np.logaddexp.reduce(values)
        assert log_z[b].item() == pytest.approx(expected, abs=1e-4)
        assert tuple(paths[b]) == max(scores, key=scores.get)


@every_case
@pytest.mark.parametrize("padding", range(4))
def test_loss_and_its_gradient_equal_brute_force_whatever_the_padding_holds(names, allowed, padding):
    crf = random_crf(len(names), allowed, seed=4)
    lengths = torch.tensor([4, 1, 3, 2])
    outside = torch.arange(4) >= lengths[:, None]
    emissions = torch.randn(4, 4, len(names))
    tags = random_legal(crf, emissions, lengths)
    tags[outside] = padding
    emissions[outside] = 1e4
    emissions.requires_grad_()
    loss = crf.negative_log_likelihood(emissions, tags, lengths)
    loss.sum().backward()
    assert all(p.grad.isfinite().all() for p in (emissions, *crf.parameters()))
    assert not emissions.grad[outside].any()
    for b, n in enumerate(lengths.tolist()):
        path = tuple(tags[b, :n].tolist())
        scores = all_scores(crf, emissions[b, :n].detach())
        log_z = np.logaddexp.reduce(np.array(list(scores.values())))
        assert loss[b].item() == pytest.approx(log_z - scores[path], abs=1e-4)
        probabilities = {p: np.exp(s - log_z) for p, s in scores.items()}
        for t in range(n):
            for tag in range(len(names)):
                marginal = sum(value for p, value in probabilities.items() if p[t] == tag)
                assert emissions.grad[b, t, tag].item() == pytest.approx(marginal - (path[t] == tag), abs=1e-5)


@every_case
def test_marginals_and_best_path_in_numpy_equal_brute_force(names, allowed):
    crf = random_crf(len(names), allowed, seed=5)
    lengths = [4, 1, 3]
    emissions = torch.randn(3, 4, len(names))
    fast = crf.in_numpy()
    paths, marginals = fast.decode(emissions.numpy(), lengths), fast.marginals(emissions.numpy(), lengths)
    for b, n in enumerate(lengths):
        scores = all_scores(crf, emissions[b, :n])
        log_z = np.logaddexp.reduce(np.array(list(scores.values())))
        assert marginals.log_z[b] == pytest.approx(log_z, abs=1e-5)
        assert tuple(paths[b]) == max(scores, key=scores.get)
        for start in range(n):
            for tag in range(len(names)):
                expected = sum(np.exp(s - log_z) for p, s in scores.items() if p[start] == tag)
                assert marginals.probability(b, start, [tag]) == pytest.approx(expected, abs=1e-5)


@every_case
def test_gradient_equals_that_of_the_explicit_sum(names, allowed):
    crf = random_crf(len(names), allowed, seed=1)
    lengths = torch.tensor([3, 2, 1])
    emissions = torch.randn(3, 3, len(names), requires_grad=True)
    weights = torch.tensor([1.0, -2.0, 0.5])
    (crf.log_partition(emissions, lengths) * weights).sum().backward()
    mine = [emissions.grad.clone(), *(p.grad.clone() for p in crf.parameters())]
    emissions.grad = None
    crf.zero_grad()
    start, transitions, end = crf.scores()
    total = torch.zeros(())
    for b, n in enumerate(lengths.tolist()):
        sums = []
        for path in product(range(len(names)), repeat=n):
            s = start[path[0]] + end[path[-1]] + sum(emissions[b, t, tag] for t, tag in enumerate(path))
            sums.append(s + sum(transitions[a, c] for a, c in pairwise(path)))
        sums = torch.stack(sums)
        total = total + weights[b] * torch.logsumexp(sums[sums.isfinite()], 0)
    total.backward()
    for a, b in zip(mine, [emissions.grad, *(p.grad for p in crf.parameters())], strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


def test_likelihood_sums_to_one_over_legal_sequences():
    crf = random_crf(len(TAGS), allowed_transitions(TAGS), seed=2)
    emissions = torch.randn(1, 3, len(TAGS))
    legal = [p for p, s in all_scores(crf, emissions[0]).items() if np.isfinite(s)]
    tags = torch.tensor(legal)
    nll = crf.negative_log_likelihood(emissions.expand(len(legal), -1, -1), tags, torch.full((len(legal),), 3))
    assert torch.exp(-nll).sum().item() == pytest.approx(1.0, abs=1e-5)


def test_decoding_never_breaks_the_scheme():
    tags = tag_set(["A", "B"])
    allowed = allowed_transitions(tags)
    crf = CRF(n_tags=len(tags), allowed=allowed)
    emissions = torch.randn(50, 9, len(tags)) * 10
    for path in crf.decode(emissions, torch.full((50,), 9)):
        assert allowed[0][path[0]] and allowed[2][path[-1]]
        assert all(allowed[1][a, b] for a, b in pairwise(path))


def test_padding_does_not_change_a_sentence():
    crf = random_crf(len(TAGS), allowed_transitions(TAGS))
    emissions = torch.randn(1, 5, len(TAGS))
    padded = torch.cat([emissions, torch.randn(1, 4, len(TAGS)) * 50], 1)
    alone, together = torch.tensor([5]), torch.tensor([5])
    torch.testing.assert_close(crf.log_partition(emissions, alone), crf.log_partition(padded, together))
    assert crf.decode(emissions, alone) == crf.decode(padded, together)


def test_sentences_of_equal_length_pay_for_no_mask(monkeypatch):
    """Only the characters beyond the end of the shortest sentence go through torch.where, in both directions."""
    calls = []
    where = torch.where
    monkeypatch.setattr(torch, "where", lambda *given: calls.append(given) or where(*given))
    crf = random_crf(len(TAGS))
    emissions = torch.randn(2, 5, len(TAGS), requires_grad=True)
    for lengths, n_masked in (([5, 5], 0), ([5, 3], 2), ([5, 1], 4)):
        calls.clear()
        crf.log_partition(emissions, torch.tensor(lengths)).sum().backward()
        assert len(calls) == 2 * n_masked


def test_a_batch_of_single_characters():
    crf = random_crf(len(TAGS))
    emissions = torch.randn(2, 1, len(TAGS))
    best = (emissions[:, 0] + crf.start + crf.end).argmax(1)
    assert crf.decode(emissions, torch.tensor([1, 1])) == [[int(tag)] for tag in best]
    assert crf.decode(emissions, torch.tensor([1, 0])) == [[int(best[0])], []]


def test_extreme_emissions_stay_finite():
    crf = random_crf(len(TAGS), allowed_transitions(TAGS))
    emissions = (torch.randn(2, 6, len(TAGS)) * 200).requires_grad_()
    loss = crf.log_partition(emissions, torch.tensor([6, 6])).sum()
    loss.backward()
    assert loss.isfinite() and emissions.grad.isfinite().all()


def test_empty_sentence_has_no_tags_and_no_loss():
    crf = random_crf(len(TAGS))
    emissions, lengths = torch.randn(2, 3, len(TAGS)), torch.tensor([0, 3])
    assert crf.decode(emissions, lengths)[0] == []
    nll = crf.negative_log_likelihood(emissions, torch.zeros(2, 3, dtype=torch.long), lengths)
    assert nll[0].item() == 0 and nll[1].item() > 0


def test_empty_sentence_without_o_has_no_loss_either():
    crf = random_crf(len(SEGMENTING), allowed_transitions(SEGMENTING))
    emissions = (torch.randn(2, 3, len(SEGMENTING)) * 1000).requires_grad_()
    tags = torch.tensor([[1, 0, 1], [0, 1, 2]])  # the first spells what no sentence may
    nll = crf.negative_log_likelihood(emissions, tags, torch.tensor([0, 3]))
    nll.sum().backward()
    assert nll[0].item() == 0 and nll[1].isfinite()
    assert not emissions.grad[0].any() and emissions.grad.isfinite().all()


@every_case
@pytest.mark.parametrize("seed", range(4))
def test_partial_likelihood_equals_brute_force(names, allowed, seed):
    """The probability of all sequences that the sets allow, and its gradient; padding allows tag 0 alone."""
    crf = random_crf(len(names), allowed)
    rng = np.random.default_rng(seed)
    emissions = torch.tensor(rng.normal(size=(3, 4, len(names))), dtype=torch.float32, requires_grad=True)
    n_chars = torch.tensor([4, 2, 3])
    gold = random_legal(crf, emissions.detach(), n_chars)
    sets = torch.tensor(rng.random((3, 4, len(names))) < 0.4)
    sets.scatter_(2, gold[:, :, None], True)  # some legal sequence is always allowed
    weights = torch.tensor(rng.uniform(-2, 0, sets.shape), dtype=torch.float32).masked_fill(~sets, float("-inf"))
    loss = crf.partial_negative_log_likelihood(emissions, weights, n_chars)
    loss.sum().backward()
    expected = []
    for b, n in enumerate(n_chars.tolist()):
        scores = all_scores(crf, emissions[b, :n].detach())
        within = [v + float(sum(weights[b, t, tag] for t, tag in enumerate(path))) for path, v in scores.items()]
        expected.append(np.logaddexp.reduce(list(scores.values())) - np.logaddexp.reduce(within))
    assert loss.tolist() == pytest.approx(expected, abs=1e-4)
    assert torch.isfinite(emissions.grad).all() and all(torch.isfinite(p.grad).all() for p in crf.parameters())
    assert not emissions.grad[1, 2:].any(), "padding takes no gradient"


@every_case
def test_partial_likelihood_of_one_tag_per_character_is_the_likelihood(names, allowed):
    crf = random_crf(len(names), allowed)
    emissions, n_chars = torch.randn(2, 4, len(names)), torch.tensor([4, 3])
    gold = random_legal(crf, emissions, n_chars)
    one = torch.nn.functional.one_hot(gold, len(names)).float()
    full = crf.negative_log_likelihood(emissions, gold, n_chars)
    assert torch.allclose(crf.partial_negative_log_likelihood(emissions, one.log(), n_chars), full, atol=1e-4)


@every_case
def test_allowing_everything_teaches_nothing(names, allowed):
    crf = random_crf(len(names), allowed)
    emissions = torch.randn(2, 5, len(names), requires_grad=True)
    loss = crf.partial_negative_log_likelihood(emissions, torch.zeros(2, 5, len(names)), torch.tensor([5, 2]))
    loss.sum().backward()
    assert loss.tolist() == pytest.approx([0, 0], abs=1e-5) and emissions.grad.abs().max() < 1e-5
