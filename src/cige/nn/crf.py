"""Linear-chain conditional random field (Lafferty et al. 2001), vectorised over the batch, exact in log space."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cige.nn.crf_numpy import NumpyCRF

IMPOSSIBLE = float("-inf")  # score of illegal transitions; every sum over tags has at least one legal term


class CRF(nn.Module):
    """Transition scores over L tags. Illegal transitions are excluded in training and in decoding.

    Emissions are float[B, T, L]; `n_chars` is int64[B]. The log partition of an empty sentence is 0.

    Args:
        allowed: bool arrays (start[L], transition[L, L] from-to, end[L]), or None for no constraints.
        boundary_scores: whether to learn scores for the first and the last tag.
    """

    def __init__(
        self,
        *,
        n_tags: int,
        allowed: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
        boundary_scores: bool = True,
    ):
        super().__init__()
        self.transitions = nn.Parameter(torch.zeros(n_tags, n_tags))
        self.start = nn.Parameter(torch.zeros(n_tags), requires_grad=boundary_scores)
        self.end = nn.Parameter(torch.zeros(n_tags), requires_grad=boundary_scores)
        if allowed is None:
            allowed = (np.ones(n_tags, bool), np.ones((n_tags, n_tags), bool), np.ones(n_tags, bool))
        for name, mask in zip(("allowed_start", "allowed", "allowed_end"), allowed, strict=True):
            self.register_buffer(name, torch.tensor(mask))
        self.allowed_start: Tensor
        self.allowed: Tensor
        self.allowed_end: Tensor

    def scores(self) -> tuple[Tensor, Tensor, Tensor]:
        """(start[L], transitions[L, L], end[L]), where illegal transitions have the score IMPOSSIBLE."""
        return (
            self.start.masked_fill(~self.allowed_start, IMPOSSIBLE),
            self.transitions.masked_fill(~self.allowed, IMPOSSIBLE),
            self.end.masked_fill(~self.allowed_end, IMPOSSIBLE),
        )

    def log_partition(self, emissions: Tensor, n_chars: Tensor) -> Tensor:
        """float[B]: log of the sum over all tag sequences."""
        return _LogPartition.apply(emissions.float(), *self.scores(), n_chars)

    def score(self, emissions: Tensor, tags: Tensor, n_chars: Tensor) -> Tensor:
        """float[B]: score of the int64[B, T] sequence `tags`; padding may have any of the L tags."""
        start, transitions, end = self.scores()
        mask = _mask(emissions, n_chars)
        unary = emissions.float().gather(2, tags[:, :, None]).squeeze(2)  # [B, T]
        pair = transitions[tags[:, :-1], tags[:, 1:]]  # [B, T - 1]
        last = tags.gather(1, (n_chars - 1).clamp(min=0)[:, None]).squeeze(1)
        # Not a product with the mask, because padding may contain illegal transitions, and -inf * 0 is NaN.
        total = unary.where(mask, 0.0).sum(1) + pair.where(mask[:, 1:], 0.0).sum(1)
        return total + (start[tags[:, 0]] + end[last]).where(n_chars > 0, 0.0)

    def negative_log_likelihood(self, emissions: Tensor, tags: Tensor, n_chars: Tensor) -> Tensor:
        """float[B]: -log p(tags | emissions)."""
        return self.log_partition(emissions, n_chars) - self.score(emissions, tags, n_chars)

    def partial_negative_log_likelihood(self, emissions: Tensor, log_weights: Tensor, n_chars: Tensor) -> Tensor:
        """float[B]: -log of the expected weight of the tag sequence.

        With weights 0 and 1, the expected weight is the probability that all tags are allowed (Jie et al. 2019).

        Args:
            log_weights: float[B, T, L], the logarithm of the weight of each tag, IMPOSSIBLE for excluded tags. At least
                one legal sequence must be possible; padding may have any values. The weight of a sequence is the
                product of the weights of its tags.
        """
        inside = _mask(emissions, n_chars)[:, :, None]
        within = emissions.float() + log_weights.masked_fill(~inside, 0.0)
        both = self.log_partition(torch.cat([emissions.float(), within]), n_chars.repeat(2))
        every, allowed_only = both.chunk(2)
        return every - allowed_only

    @torch.no_grad()
    def decode(self, emissions: Tensor, n_chars: Tensor) -> list[list[int]]:
        """The best tag sequence of each sentence (Viterbi)."""
        return self.in_numpy().decode(emissions.double().cpu().numpy(), n_chars.tolist())

    @torch.no_grad()
    def in_numpy(self) -> NumpyCRF:
        """The same CRF in NumPy, for prediction."""
        start, transitions, end = (x.double().cpu().numpy() for x in self.scores())
        return NumpyCRF(start=start, transitions=transitions, end=end)


class _LogPartition(torch.autograd.Function):
    """The gradient of log Z, which are the marginals, computed by forward-backward without a graph of T small steps."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, start: Tensor, transitions: Tensor, end: Tensor, n_chars: Tensor
    ) -> Tensor:
        emissions, start, transitions, end = (x.double() for x in (emissions, start, transitions, end))
        alpha = _forward_scores(emissions, start, transitions, n_chars)
        log_z = torch.logsumexp(alpha[:, -1] + end, 1).masked_fill(n_chars == 0, 0.0)
        ctx.save_for_backward(emissions, transitions, end, n_chars, alpha, log_z)
        return log_z.float()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        emissions, transitions, end, n_chars, alpha, log_z = ctx.saved_tensors
        beta = _backward_scores(emissions, transitions, end, n_chars)
        mask, grad = _mask(emissions, n_chars), grad.double()
        # Scores of padding are arbitrary and may overflow in exp. They are replaced, since inf * 0 is NaN.
        unary = (alpha + beta - log_z[:, None, None]).masked_fill(~mask[:, :, None], IMPOSSIBLE).exp()  # [B, T, L]
        unary = unary * grad[:, None, None]
        # p(tag i at t, tag j at t + 1) = exp(alpha_i + transition_ij + emission_j + beta_j - log Z), summed over B, T
        before, after = alpha[:, :-1], (emissions + beta)[:, 1:]
        top_before, top_after = before.amax(2, keepdim=True), after.amax(2, keepdim=True)
        weight = (top_before + top_after - log_z[:, None, None]).masked_fill(~mask[:, 1:, None], IMPOSSIBLE).exp()
        weight = weight * grad[:, None, None]
        before, after = (before - top_before).exp() * weight, (after - top_after).exp()
        pair = transitions.exp() * (before.flatten(0, 1).t() @ after.flatten(0, 1))
        last = unary.gather(1, (n_chars - 1).clamp(min=0)[:, None, None].expand(-1, 1, unary.shape[2]))
        gradients = (unary, unary[:, 0].sum(0), pair, last.squeeze(1).sum(0))
        return *(g.float() for g in gradients), None


def _mask(emissions: Tensor, n_chars: Tensor) -> Tensor:
    return torch.arange(emissions.shape[1], device=emissions.device) < n_chars[:, None]  # [B, T]


def _forward_scores(emissions: Tensor, start: Tensor, transitions: Tensor, n_chars: Tensor) -> Tensor:
    """alpha[B, T, L]: log-sum over all paths to a tag, including its emission; constant beyond the end."""
    alpha = [start + emissions[:, 0]]
    step, shortest = transitions.exp(), int(n_chars.min())
    for t in range(1, emissions.shape[1]):
        reached = _log_matmul(alpha[-1], step) + emissions[:, t]
        alpha.append(reached if t < shortest else torch.where((t < n_chars)[:, None], reached, alpha[-1]))
    return torch.stack(alpha, 1)


def _backward_scores(emissions: Tensor, transitions: Tensor, end: Tensor, n_chars: Tensor) -> Tensor:
    """beta[B, T, L]: log-sum over all paths after a tag, without its emission."""
    final = end.expand(len(emissions), -1)
    beta = [final]
    step, shortest = transitions.t().exp().contiguous(), int(n_chars.min())
    for t in range(emissions.shape[1] - 2, -1, -1):
        reached = _log_matmul(beta[-1] + emissions[:, t + 1], step)
        beta.append(reached if t + 1 < shortest else torch.where((t + 1 < n_chars)[:, None], reached, final))
    return torch.stack(beta[::-1], 1)


def _log_matmul(scores: Tensor, step: Tensor) -> Tensor:
    """log(exp(scores) @ step) of float64[B, L] and [L, L].

    This takes one small product per character instead of L^2 exponentials. In float64, a tag underflows only if it is
    e^-700 times as likely as the best one.
    """
    top = scores.amax(1, keepdim=True)
    return ((scores - top).exp_() @ step).log_().add_(top)
