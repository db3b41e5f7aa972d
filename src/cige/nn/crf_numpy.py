"""The best tags and their probabilities according to a trained linear-chain CRF, in NumPy.

`cige.nn.crf` trains this model; here it runs in float64, on emissions that any runtime may have computed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


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
        ways = np.empty((n_tags, n_tags, n_batch))
        for t in range(1, n_steps):
            np.add(best[t - 1][:, None], self.transitions[:, :, None], out=ways)
            np.add(ways.max(0), unary[t], out=best[t])
        return self._trace_back(best, np.asarray(n_chars))

    def _trace_back(self, best: np.ndarray, n_chars: np.ndarray) -> list[list[int]]:
        """The predecessors are computed again, but only along the best path: L sums per step instead of L * L."""
        n_steps, _, n_batch = best.shape
        last = np.maximum(n_chars - 1, 0)
        tag = (best[last, :, np.arange(n_batch)] + self.end).argmax(1)  # [B]
        into = np.ascontiguousarray(self.transitions.T)
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
            alpha = self._forward(unary)
            beta = self._backward(unary, last)
        final = alpha[np.arange(len(unary)), last] + self.end
        top = final.max(1)
        log_z = top + np.log(np.exp(final - top[:, None]).sum(1))
        return SegmentMarginals(self.transitions, unary, alpha, beta, log_z)

    def _forward(self, unary: np.ndarray) -> np.ndarray:
        """alpha[B, T, L]: log-sum over all paths to a tag, including its emission."""
        alpha = np.empty_like(unary)
        alpha[:, 0] = self.start + unary[:, 0]
        step = np.exp(self.transitions)
        for t in range(1, unary.shape[1]):
            alpha[:, t] = _log_matmul(alpha[:, t - 1], step) + unary[:, t]
        return alpha

    def _backward(self, unary: np.ndarray, last: np.ndarray) -> np.ndarray:
        """beta[B, T, L]: log-sum over all paths after a tag, without its emission."""
        beta = np.empty_like(unary)
        beta[:, -1] = self.end
        step = np.ascontiguousarray(np.exp(self.transitions).T)
        shortest = int(last.min())
        for t in range(unary.shape[1] - 2, -1, -1):
            reached = _log_matmul(beta[:, t + 1] + unary[:, t + 1], step)
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


def _log_matmul(scores: np.ndarray, step: np.ndarray) -> np.ndarray:
    """log(exp(scores) @ step) of float64[B, L] and [L, L].

    This takes one small product per character instead of L^2 exponentials. In float64, a tag underflows only if it is
    e^-700 times as likely as the best one.
    """
    top = scores.max(1, keepdims=True)
    reached = np.exp(scores - top) @ step
    return np.log(reached, out=reached) + top
