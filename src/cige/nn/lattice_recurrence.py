"""The recurrence of a lattice LSTM over a batch, for both directions together, with a manually derived gradient.

A step reads one character of every sentence in both directions, and every word that ends there. The cell of a word
connects the state after its first character directly to its last character (Zhang and Yang 2018). Words are sorted by
the step at which they end, so that the words of a step are a slice; the states of their first characters are gathered.
Everything that does not depend on states (products with inputs) is computed beforehand, and everything that does not
have to wait for the next step (gradients of weights, derivatives of gates) is computed for all steps together at the
end. A step then takes only a few small operations in the forward and in the backward pass; an autograd graph takes
several times as many.

The first index of weights is the direction: 0 from the left, 1 from the right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from cige.data.batch import LatticeBatch


@dataclass(frozen=True)
class WordSteps:
    """The K words of a batch in both directions, sorted by last step, then by direction.

    Attributes:
        word: int64[K], index of each word in [2, B, W]: its direction, sentence and number in the sentence.
        start: int64[K], index in [2, T + 1, B] of the state after its first character (0 is before any character).
        end: int64[K], index in [2, T, B] of the step at its last character.
        row: int64[K], index in [2, B] of its sentence within a step.
        n_words: for each of the T steps, how many words end there from the left and from the right.
    """

    word: Tensor
    start: Tensor
    end: Tensor
    row: Tensor
    n_words: list[tuple[int, int]]


def word_steps(batch: LatticeBatch) -> WordSteps:
    """Steps count from each direction's own first character; padding comes after them and nothing ends there."""
    n_padded, n_sentences = batch.chars.shape[1], len(batch)
    n_chars = batch.n_chars[:, None]
    start = torch.stack([batch.word_starts, n_chars - batch.word_ends])  # [2, B, W]
    end = torch.stack([batch.word_ends - 1, n_chars - 1 - batch.word_starts])
    word = batch.word_mask.expand(2, -1, -1).flatten().nonzero().squeeze(1)
    direction = word // batch.words.numel()
    sentence = word % batch.words.numel() // batch.words.shape[1]
    start, end = start.flatten()[word], end.flatten()[word]
    key = 2 * end + direction
    order = key.argsort(stable=True)
    counts = torch.bincount(key, minlength=2 * n_padded).tolist()
    word, direction, sentence, start, end = (x[order] for x in (word, direction, sentence, start, end))
    return WordSteps(
        word=word,
        start=(direction * (n_padded + 1) + start + 1) * n_sentences + sentence,
        end=(direction * n_padded + end) * n_sentences + sentence,
        row=direction * n_sentences + sentence,
        n_words=list(zip(counts[::2], counts[1::2], strict=True)),
    )


@dataclass(frozen=True)
class LatticeInputs:
    """The inputs of a recurrence. The gates contain the sums that do not depend on states.

    Attributes:
        chars: float[2, T, B, 4H], gates of each character: candidate, input, forget, output. With three gates,
            [2, T, B, 3H], there is no forget gate, and 1 - input is used instead.
        words: float[K, 3H], gates of each word: candidate, input, forget.
        links: float[K, H], the gate between each word and its last character.
        char_state: float[2, H, 4H or 3H]; word_state: float[2, H, 3H]; link_cell: float[2, H, H].
    """

    chars: Tensor
    words: Tensor
    links: Tensor
    char_state: Tensor
    word_state: Tensor
    link_cell: Tensor


@dataclass(frozen=True)
class LatticeTrace:
    """The results of a run: the gates of `LatticeInputs` after their non-linearities, and the states.

    Attributes:
        hidden, cell: float[2, T + 1, B, H]; the first step is before any character.
        word_cell: float[K, H].
    """

    chars: Tensor
    words: Tensor
    links: Tensor
    hidden: Tensor
    cell: Tensor
    word_cell: Tensor

    def normalised(self, steps: WordSteps) -> tuple[Tensor, Tensor, Tensor]:
        """The softmax over a character's input gate and the links of the words that end there.

        Returns:
            float[2, T, B, H] for the character and float[K, H] for the words (which sum to 1 for each character), and
            bool[2, T, B, 1], whether any word ends there; the first is undefined if none does.
        """
        width = self.links.shape[1]
        char, word = self.chars[..., width : 2 * width].exp(), self.links.exp()
        total = char.flatten(0, 2).index_add(0, steps.end, word)
        has_words = torch.zeros(len(total), 1, dtype=torch.bool, device=total.device)
        has_words[steps.end] = True
        return char / total.view_as(char), word / total[steps.end], has_words.view(*char.shape[:3], 1)


def lattice_recurrence(inputs: LatticeInputs, steps: WordSteps) -> Tensor:
    """float[2, T, B, H]: the hidden state after each character, in the order in which each direction reads.

    If no gradient is needed, the gates in `inputs` are overwritten, because copying them takes 3 % of the time.
    """
    dtype = inputs.char_state.dtype
    with torch.autocast(inputs.chars.device.type, enabled=False):  # recurrent sums need the precision of the weights
        tensors = [x.to(dtype) for x in vars(inputs).values()]
        if not torch.is_grad_enabled():
            return trace(LatticeInputs(*tensors), steps, in_place=True).hidden[:, 1:]
        return _Recurrence.apply(steps, *tensors)


@torch.no_grad()
def trace(inputs: LatticeInputs, steps: WordSteps, *, in_place: bool = False) -> LatticeTrace:
    """Run without a gradient and keep all results; `in_place` overwrites the gates in `inputs`."""
    width = inputs.link_cell.shape[1]
    chars, words, links = (x if in_place else x.clone() for x in (inputs.chars, inputs.words, inputs.links))
    _, n_steps, n_sentences, _ = chars.shape
    hidden = chars.new_zeros(2, n_steps + 1, n_sentences, width)
    cell = torch.zeros_like(hidden)
    word_cell = torch.empty_like(links)
    has_words = torch.zeros(2 * n_steps * n_sentences, 1, dtype=torch.bool, device=chars.device)
    has_words[steps.end] = True

    sizes = [sum(n) for n in steps.n_words]
    sentence_of_word = torch.nn.functional.one_hot(steps.row, 2 * n_sentences).to(chars.dtype)
    of_words = (words, links, word_cell, steps.start)
    by_step = zip(*(x.split(sizes) for x in of_words), sentence_of_word.t().split(sizes, 1), strict=True)
    at_step = (chars, hidden[:, 1:], cell[:, 1:], has_words.view(2, n_steps, n_sentences, 1))
    before_h, before_c = hidden[:, 0], cell[:, 0]
    for n, ended, gates, h, c, joined in zip(steps.n_words, by_step, *(x.unbind(1) for x in at_step), strict=True):
        gates.baddbmm_(before_h, inputs.char_state)
        gates[..., :width].tanh_()
        gates[..., width:].sigmoid_()
        candidate, let_in, *forget, let_out = gates.split(width, -1)
        if forget:
            torch.mul(forget[0], before_c, out=c).addcmul_(let_in, candidate)
        else:
            torch.lerp(before_c, candidate, let_in, out=c)
        if sum(n):
            word_gates, link, cells, start, sentence = ended
            _add_product(word_gates, hidden.view(-1, width).index_select(0, start), inputs.word_state, n)
            word_gates[:, :width].tanh_()
            word_gates[:, width:].sigmoid_()
            torch.mul(word_gates[:, 2 * width :], cell.view(-1, width).index_select(0, start), out=cells)
            cells.addcmul_(word_gates[:, width : 2 * width], word_gates[:, :width])
            _add_product(link, cells, inputs.link_cell, n)
            weight = link.sigmoid_().exp()
            total = let_in.exp()
            sums = torch.cat([total, total * candidate], -1)  # [2, B, 2H]
            sums.view(-1, 2 * width).addmm_(sentence, torch.cat([weight, weight * cells], 1))
            total, mixed = sums.split(width, -1)
            torch.where(joined, mixed / total, c, out=c)
        torch.tanh(c, out=h).mul_(let_out)
        before_h, before_c = h, c
    return LatticeTrace(chars, words, links, hidden, cell, word_cell)


def _add_product(out: Tensor, x: Tensor, weights: Tensor, n: tuple[int, int]) -> None:
    """out += x @ weights, where the first n[0] rows have direction 0 and the other n[1] direction 1."""
    for direction, rows in enumerate((slice(0, n[0]), slice(n[0], None))):
        if n[direction]:
            out[rows].addmm_(x[rows], weights[direction])


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, steps: WordSteps, *inputs: Tensor) -> Tensor:
        run = trace(LatticeInputs(*inputs), steps)
        ctx.steps = steps
        _, _, _, *weights = inputs
        ctx.save_for_backward(*weights, *vars(run).values())
        return run.hidden[:, 1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_hidden: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        char_state, word_state, link_cell, *values = ctx.saved_tensors
        run, steps = LatticeTrace(*values), ctx.steps
        chars, words, links = _gate_gradients(run, steps, grad_hidden, (char_state, word_state, link_cell))
        return (None, chars, words, links, *_weight_gradients(run, steps, chars, words, links))


@dataclass(frozen=True)
class _Slopes:
    """The derivatives of one step: the factors that convert a gradient of an output to that of an input.

    Attributes:
        cell_from_hidden: float[2, T, B, H]; kept: the previous cell, from the cell.
        chars: float[2, T, B, gates, H], a gate's sum, from the cell or, for the output gate, from the state.
        links, shares: float[K, H], a link's sum and a word's cell, from the cell of its last character.
        words: float[K, 3, H], a word gate's sum, from the word's cell.
        forget: float[K, H], the cell of its first character, from the word's cell.
    """

    cell_from_hidden: Tensor
    kept: Tensor
    chars: Tensor
    links: Tensor
    shares: Tensor
    words: Tensor
    forget: Tensor


def _slopes(run: LatticeTrace, steps: WordSteps) -> _Slopes:
    width = run.links.shape[1]
    before, cell = run.cell[:, :-1], run.cell[:, 1:]
    candidate, let_in, *forget, let_out = run.chars.split(width, -1)
    squashed = cell.tanh()
    share, word_share, has_words = run.normalised(steps)
    kept = (forget[0] if forget else 1 - let_in).masked_fill(has_words, 0)
    share = torch.where(has_words, share, let_in)
    # softmax: d(weighted mean) / d(score) = weight * (value - mean)
    let_in_slope = torch.where(has_words, share * (candidate - cell), candidate - (0 if forget else before))
    by_gate = [share * (1 - candidate.square()), let_in_slope * let_in * (1 - let_in)]
    by_gate += [before.masked_fill(has_words, 0) * gate * (1 - gate) for gate in forget]
    by_gate.append(squashed * let_out * (1 - let_out))
    value, word_in, word_forget = run.words.split(width, -1)
    first = run.cell.flatten(0, 2)[steps.start]
    mean = cell.flatten(0, 2)[steps.end]
    return _Slopes(
        cell_from_hidden=let_out * (1 - squashed.square()),
        kept=kept,
        chars=torch.stack(by_gate, -2),
        links=word_share * (run.word_cell - mean) * run.links * (1 - run.links),
        shares=word_share,
        words=torch.stack(
            [
                word_in * (1 - value.square()),
                value * word_in * (1 - word_in),
                first * word_forget * (1 - word_forget),
            ],
            1,
        ),
        forget=word_forget,
    )


def _gate_gradients(
    run: LatticeTrace, steps: WordSteps, grad_hidden: Tensor, weights: tuple[Tensor, Tensor, Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the sums in the gates of characters, words and links, starting from the last step."""
    slopes = _slopes(run, steps)
    width = run.links.shape[1]
    char_state, word_state, link_cell = (x.transpose(1, 2) for x in weights)
    hidden = torch.cat([torch.zeros_like(grad_hidden[:, :1]), grad_hidden], 1)  # [2, T + 1, B, H], accumulates
    cell = torch.zeros_like(hidden)
    chars, words, links = (torch.empty_like(x) for x in (run.chars, run.words, run.links))
    sizes = [sum(n) for n in steps.n_words]
    of_words = (words, links, slopes.words, slopes.links, slopes.shares, slopes.forget, steps.start, steps.row)
    by_step = list(zip(*(x.split(sizes) for x in of_words), strict=True))
    for t in reversed(range(len(sizes))):
        after_h, grad = hidden[:, t + 1], chars[:, t].unflatten(-1, (-1, width))
        after_c = torch.addcmul(cell[:, t + 1], after_h, slopes.cell_from_hidden[:, t])  # [2, B, H]
        slope = slopes.chars[:, t]
        torch.mul(slope[..., :-1, :], after_c[..., None, :], out=grad[..., :-1, :])
        torch.mul(slope[..., -1, :], after_h, out=grad[..., -1, :])
        hidden[:, t].baddbmm_(chars[:, t], char_state)
        cell[:, t].addcmul_(after_c, slopes.kept[:, t])
        if sizes[t]:
            word, link, word_slope, link_slope, share, forget, start, row = by_step[t]
            from_cell = after_c.view(-1, width).index_select(0, row)
            torch.mul(from_cell, link_slope, out=link)
            word_cell = from_cell.mul_(share)
            _add_product(word_cell, link, link_cell, steps.n_words[t])
            torch.mul(word_slope, word_cell[:, None], out=word.unflatten(-1, (3, width)))
            from_word = torch.zeros_like(word_cell)
            _add_product(from_word, word, word_state, steps.n_words[t])
            hidden.view(-1, width).index_add_(0, start, from_word)
            cell.view(-1, width).index_add_(0, start, word_cell.mul_(forget))
    return chars, words, links


def _weight_gradients(
    run: LatticeTrace, steps: WordSteps, chars: Tensor, words: Tensor, links: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of char_state, word_state and link_cell, each as one product over all steps."""
    char_state = run.hidden[:, :-1].flatten(1, 2).transpose(1, 2) @ chars.flatten(1, 2)
    first = run.hidden.flatten(0, 2)[steps.start]
    is_left = steps.row < run.hidden.shape[2]
    both = [is_left.nonzero().squeeze(1), (~is_left).nonzero().squeeze(1)]
    word_state = torch.stack([first[k].t() @ words[k] for k in both])
    link_cell = torch.stack([run.word_cell[k].t() @ links[k] for k in both])
    return char_state, word_state, link_cell
