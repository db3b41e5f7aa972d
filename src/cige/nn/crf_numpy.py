"""The best tags and their probabilities according to a trained linear-chain CRF, in NumPy.

`cige.nn.crf` trains this model; here it runs in float64, on emissions that any runtime may have computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

MANY = 4  # sentences of a batch from which on the numbers of a step cost more than its calls
FEW = 2  # tags that a tag may follow so that it is decoded apart
RESCALED = 4  # steps after which probabilities are scaled; float64 holds e^-700, and a step takes e^-WIDE at most
WIDE = 100.0  # differences of scores with which sums are made of logarithms; those of trained models are below 40
TINY = 1e-280  # a sum of probabilities from which on some of its terms may have been lost


class NumpyCRF:
    """Viterbi and marginals over L tags, vectorised over the batch.

    Emissions are float[B, T, L], where padding may have any values; `n_chars` are the B lengths.

    Args:
        start: [L], score of each first tag; -inf if the scheme forbids it.
        transitions: [L, L], from (row) to (column); -inf if forbidden.
        end: [L], score of each last tag; -inf if forbidden.
    """

    def __init__(self, *, start: np.ndarray, transitions: np.ndarray, end: np.ndarray):
        self.start, self.transitions, self.end = (np.asarray(x, np.float64) for x in (start, transitions, end))

    @property
    def trained(self) -> NumpyCRF:
        """The CRF without the constraints of a sentence, which subclasses add."""
        return self

    def decode(self, emissions: np.ndarray, n_chars: Sequence[int]) -> list[list[int]]:
        """The best tag sequence of each sentence (Viterbi)."""
        n_batch, n_steps, n_tags = emissions.shape
        unary = np.ascontiguousarray(emissions.transpose(1, 2, 0), np.float64)  # [T, L, B]
        best = np.empty_like(unary)  # best[t, tag]: score of the best path to `tag` at t
        best[0] = self.start[:, None] + unary[0]
        if n_batch < MANY:
            ways = np.empty((n_tags, n_tags, n_batch))
            for t in range(1, n_steps):
                np.add(best[t - 1][:, None], self.transitions[:, :, None], out=ways)
                np.add(ways.max(0), unary[t], out=best[t])
        else:
            for t in range(1, n_steps):
                self._best_into(best[t - 1], best[t])
                best[t] += unary[t]
        return self._trace_back(best, np.asarray(n_chars))

    def _best_into(self, before: np.ndarray, out: np.ndarray) -> None:
        """Write to out[L, B] the best score of a path to each tag, without its emission, from before[L, B].

        In a tagging scheme, half of the tags may follow two others only, such as the end of an entity. So the tags that
        may follow many are looked for among these, and the others among their FEW.
        """
        many, rows, scores, few, own, few_scores = self._steps
        if len(many):
            out[many] = (before[rows][:, None] + scores[:, :, None]).max(0)
        if len(few):
            out[few] = (before[own] + few_scores[:, :, None]).max(0)

    @cached_property
    def _steps(self) -> tuple[np.ndarray, ...]:
        """Tags that may follow more than FEW others, those that any of them may follow, and the scores of both,
        [rows, many]; the other tags, what each may follow, [FEW, few], and the scores of that."""
        allowed = self.transitions > -np.inf
        is_many = allowed.sum(0) > FEW
        many, few = np.flatnonzero(is_many), np.flatnonzero(~is_many)
        rows = np.flatnonzero(allowed[:, many].any(1))
        own = np.argsort(~allowed[:, few], axis=0, kind="stable")[:FEW]  # what is not allowed has the score -inf
        return many, rows, self.transitions[np.ix_(rows, many)], few, own, self.transitions[own, few]

    def _trace_back(self, best: np.ndarray, n_chars: np.ndarray) -> list[list[int]]:
        """The predecessors are computed again, but only along the best path: L sums per step instead of L * L."""
        n_steps, _, n_batch = best.shape
        last = np.maximum(n_chars - 1, 0)
        tag = (best[last, :, np.arange(n_batch)] + self.end).argmax(1)  # [B]
        into = np.ascontiguousarray(self.transitions.T)
        if n_batch == 1:  # without the calls that many sentences need
            of_one, one, n = np.ascontiguousarray(best[:, :, 0]), [int(tag[0])], int(n_chars[0])
            for t in range(n - 2, -1, -1):
                one.append(int((of_one[t] + into[one[-1]]).argmax()))
            return [one[::-1][:n]]
        path = np.empty((n_steps, n_batch), np.int64)
        for t in range(n_steps - 1, -1, -1):
            came_from = (best[t].T + into[tag]).argmax(1)
            tag = np.where(t < last, came_from, tag)
            path[t] = tag
        return [tags[:n].tolist() for tags, n in zip(path.T, n_chars.tolist(), strict=True)]

    def marginals(self, emissions: np.ndarray, n_chars: Sequence[int]) -> SegmentMarginals:
        """Forward and backward scores, from which the probability of any sequence of tags can be computed."""
        unary = np.asarray(emissions, np.float64)
        last = np.maximum(np.asarray(n_chars) - 1, 0)
        with np.errstate(divide="ignore"):  # log of 0 if the scheme allows no path
            both = self._scaled(unary, last) if len(unary) < MANY else None
            alpha, beta = both or (self._forward(unary), self._backward(unary, last))
        final = alpha[np.arange(len(unary)), last] + self.end
        top = final.max(1)
        log_z = top + np.log(np.exp(final - top[:, None]).sum(1))
        return SegmentMarginals(self.transitions, unary, alpha, beta, log_z)

    def _scaled(self, unary: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """alpha and beta (see `_forward` and `_backward`), or None if a sum of probabilities may underflow.

        Both are sums of products of probabilities, which are scaled by RESCALED steps, without an exponential or a
        logarithm per step. Read from its end, a sentence is a sentence with the transposed transitions, so one loop
        makes both.
        """
        n_batch, n_steps, _ = unary.shape
        steps = np.arange(n_steps)
        backwards, is_padding = np.maximum(last[:, None] - steps, 0), steps > last[:, None]  # [B, T]
        known = np.where(is_padding[:, :, None], 0, unary) if is_padding.any() else unary
        two_ways = np.stack([known, np.take_along_axis(unary, backwards[:, :, None], 1)])  # [2, B, T, L]
        top = two_ways.max(-1, keepdims=True)
        if not np.isfinite(top).all():
            return None
        below = two_ways - top
        if below.min(where=below > -np.inf, initial=0.0) < self.spread - WIDE:
            return None
        factors = np.ascontiguousarray(np.exp(below).transpose(2, 0, 1, 3))  # [T, 2, B, L]
        step = np.exp(np.stack([self.transitions, self.transitions.T]))
        reached = np.empty_like(factors)  # the sums before a character's own factors
        reached[0] = np.exp(np.stack([self.start, self.end]))[:, None]
        scales = np.zeros((n_steps, 2, n_batch))
        sums = factors[0] * reached[0]
        for t in range(1, n_steps):
            if t % RESCALED == 0:
                total = sums.max(-1)
                if not total.all():
                    return None
                sums /= total[..., None]
                scales[t] = total
            np.matmul(sums, step, out=reached[t])
            np.multiply(reached[t], factors[t], out=sums)
        if not (reached > 0).any(-1).all():
            return None
        added = np.log(scales, where=scales > 0, out=scales) + np.roll(top[..., 0].transpose(2, 0, 1), 1, 0)
        added[0] = 0
        logs = np.log(reached, out=reached) + np.cumsum(added, 0)[..., None]
        alpha = logs[:, 0].transpose(1, 0, 2) + unary
        beta = np.take_along_axis(logs[:, 1].transpose(1, 0, 2), backwards[:, :, None], 1)
        beta[is_padding] = self.end
        return alpha, beta

    @cached_property
    def spread(self) -> float:
        """The greatest difference of scores that are not forbidden."""
        scores = np.concatenate([x.ravel() for x in (self.start, self.transitions, self.end)])
        return float(np.ptp(scores[scores > -np.inf]))

    def _forward(self, unary: np.ndarray) -> np.ndarray:
        """alpha[B, T, L]: log-sum over all paths to a tag, including its emission."""
        alpha = np.empty_like(unary)
        alpha[:, 0] = self.start + unary[:, 0]
        step = np.exp(self.transitions)
        for t in range(1, unary.shape[1]):
            alpha[:, t] = _log_matmul(alpha[:, t - 1], step, self.transitions) + unary[:, t]
        return alpha

    def _backward(self, unary: np.ndarray, last: np.ndarray) -> np.ndarray:
        """beta[B, T, L]: log-sum over all paths after a tag, without its emission."""
        beta = np.empty_like(unary)
        beta[:, -1] = self.end
        step = np.ascontiguousarray(np.exp(self.transitions).T)
        shortest = int(last.min())
        for t in range(unary.shape[1] - 2, -1, -1):
            reached = _log_matmul(beta[:, t + 1] + unary[:, t + 1], step, self.transitions.T)
            beta[:, t] = reached if t < shortest else np.where((t < last)[:, None], reached, self.end)
        return beta


class SegmentMarginals:
    """p(tags of [start, end) | sentence), summed over all tags outside the stretch.

    Attributes:
        log_z: float64[B], log of the sum over all tag sequences.
    """

    def __init__(
        self, transitions: np.ndarray, emissions: np.ndarray, alpha: np.ndarray, beta: np.ndarray, log_z: np.ndarray
    ):
        self._transitions, self._emissions = transitions, emissions
        self._alpha, self._beta, self.log_z = alpha, beta, log_z

    def tag_probabilities(self, sentence: int) -> np.ndarray:
        """float64[T, L]: the probability of each tag at each character; values of padding are undefined."""
        with np.errstate(over="ignore"):  # of padding
            return np.exp(self._alpha[sentence] + self._beta[sentence] - self.log_z[sentence])

    def probability(self, sentence: int, start: int, tags: Sequence[int]) -> float:
        """Probability, 0..1, that characters start, start + 1, ... have these tags."""
        steps = range(1, len(tags))
        log_p = self._alpha[sentence, start, tags[0]] + self._beta[sentence, start + len(tags) - 1, tags[-1]]
        log_p += sum(self._transitions[tags[k - 1], tags[k]] for k in steps)
        log_p += sum(self._emissions[sentence, start + k, tags[k]] for k in steps)
        return float(min(1.0, np.exp(log_p - self.log_z[sentence])))


def _log_matmul(scores: np.ndarray, step: np.ndarray, log_step: np.ndarray) -> np.ndarray:
    """log(exp(scores) @ step) of float64[B, L] and [L, L]; see `crf._log_matmul`.

    What may have underflowed is summed again from `log_step`, the logarithms of `step`.
    """
    top = scores.max(1, keepdims=True)
    sums = np.exp(scores - top) @ step
    rows, tags = np.nonzero(sums < TINY)
    reached = np.log(sums, out=sums) + top
    if len(rows):
        reached[rows, tags] = np.logaddexp.reduce(scores[rows] + log_step.T[tags], axis=1)
    return reached
