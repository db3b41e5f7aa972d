"""Lattice LSTM: a character LSTM with shortcuts, a cell for each word from its first character to its last.

Zhang, Yang: "Chinese NER Using Lattice LSTM", ACL 2018.

    c_南 -> c_京 -> c_市 -> c_长 -> c_江 -> c_大 -> c_桥        characters (§3.1, and with words §3.3)
      \\______\\_[南京市]/        \\____[长江大桥]_______/         a word's cell joins the cell of its last character

§3.3  word cell         c_w = f * c_first + i * tanh(...), gates from the word's vector and the state after its first
                        character; no output gate
      link gate         the weight of a word's cell: sigmoid(x_last W + c_w U + b)
      character's cell  where words end: the mean of candidate and word cells, weighted elementwise by the softmax of
                        input gate and link gates; the previous cell is not used
§3.4  both directions concatenated -> linear -> CRF

The paper's form has a forget gate; the released code uses 1 - input instead (`coupled_gates`). Its second copy of the
word vectors for the second direction is not reproduced. Weights are initialised as in that code: input matrices are
orthogonal, state matrices are identities, and biases are zero. `use_words=False` gives a bidirectional LSTM over
characters.

A batch is read in steps of one character, both directions in the same step (nn/lattice_recurrence.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from cige.data.batch import LatticeBatch
from cige.models.config import ModelConfig, odd_widths
from cige.models.encoder import LatticeEncoder
from cige.nn.char_features import CharFeatures
from cige.nn.embeddings import InputSizes
from cige.nn.lattice_recurrence import LatticeInputs, WordSteps, lattice_recurrence, trace, word_steps
from cige.nn.recurrent import mirrored_positions, take


@dataclass(frozen=True, kw_only=True)
class LatticeLstmConfig(ModelConfig):
    """Lattice LSTM's settings; widths and probabilities are those of the paper's Table 3 and the released code."""

    use_bigrams: bool = False
    """Whether to read character bigrams in addition to characters."""
    lstm_width: int = 200
    """Width of the output, half of it per direction."""
    coupled_gates: bool = False
    """Use 1 - input instead of a forget gate (released code)."""
    use_words: bool = True
    """False reads only characters: the same model without words."""
    output_dropout_prob: float = 0.5
    """Dropout before the tag scores."""

    def problems(self) -> list[str]:
        return odd_widths(lstm_width=self.lstm_width)


class LatticeLstmEncoder(LatticeEncoder[LatticeLstmConfig]):
    def __init__(self, *, config: LatticeLstmConfig, sizes: InputSizes, features: CharFeatures | None = None):
        super().__init__(config, sizes, features, words=config.use_words)
        self.width = config.lstm_width // 2  # H
        self.out_width = config.lstm_width
        in_width, n_gates = self.char_width, 3 if config.coupled_gates else 4
        self.chars = GateSums(in_width, self.width, n_gates)
        self.words = GateSums(self.embeddings.word_width, self.width, 3) if config.use_words else None
        self.links = GateSums(in_width, self.width, 1) if config.use_words else None

    def forward(self, batch: LatticeBatch) -> Tensor:
        """float[B, T, lstm_width]: states from the left, then from the right."""
        return self._both_directions(lattice_recurrence(*self._inputs(batch)), batch)

    def read_words(self, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """Character features, and shares of words float[B, T, W].

        The share is a word's weight in the cell of the character where it ends, as the mean over the H elements of the
        cell. Read from the left, words end at their last character, and read from the right at their first; each
        direction contributes one half.
        """
        inputs, steps = self._inputs(batch)
        run = trace(inputs, steps)
        features = self._both_directions(run.hidden[:, 1:], batch)
        n_sentences, n_padded = batch.chars.shape
        shares = features.new_zeros(n_sentences, n_padded, batch.words.shape[1])
        share = run.normalised(steps)[1].mean(1) / 2  # [K]
        word = steps.word % batch.words.shape[1]
        sentence = steps.row % n_sentences
        step = steps.end // n_sentences % n_padded
        place = torch.where(steps.row < n_sentences, step, batch.n_chars[sentence] - 1 - step)
        shares.index_put_((sentence, place, word), share, accumulate=True)
        return features, shares

    def _inputs(self, batch: LatticeBatch) -> tuple[LatticeInputs, WordSteps]:
        chars = self.read_chars(batch)
        mirrored = take(chars, mirrored_positions(batch.n_chars, chars.shape[1]))
        both = torch.stack([chars, mirrored]).transpose(1, 2).contiguous()  # [2, T, B, C]
        if self.words is None or self.links is None:
            steps = word_steps(replace(batch, n_words=torch.zeros_like(batch.n_words)))
            nothing = chars.new_zeros(2, self.width, 3 * self.width)
            words = (nothing[0, :0], nothing[0, :0, : self.width])
            states = (self.chars.state, nothing, nothing[..., : self.width])
        else:
            steps = word_steps(batch)
            vectors = self.embeddings.words(batch).expand(2, -1, -1, -1)  # [2, B, W, E]
            words = (self.words(vectors).flatten(0, 2)[steps.word], self.links(both).flatten(0, 2)[steps.end])
            states = (self.chars.state, self.words.state, self.links.state)
        return LatticeInputs(self.chars(both), *words, *states), steps

    def _both_directions(self, hidden: Tensor, batch: LatticeBatch) -> Tensor:
        """Convert float[2, T, B, H] in the order of each direction to float[B, T, 2H] in the order of the sentence."""
        left, right = hidden.transpose(1, 2)  # [B, T, H]
        right = take(right, mirrored_positions(batch.n_chars, right.shape[1]))
        return torch.cat([left, right], -1) * batch.char_mask[:, :, None]


class GateSums(nn.Module):
    """The sums in n gates of width H: products with the input and with the state, and biases, per direction.

    The product with `state`, float[2, H, n H], is computed by the recurrence.
    """

    def __init__(self, in_width: int, width: int, n_gates: int):
        super().__init__()
        self.input = nn.Parameter(torch.empty(2, in_width, n_gates * width))
        self.state = nn.Parameter(torch.eye(width).repeat(2, 1, n_gates))
        self.bias = nn.Parameter(torch.zeros(2 * n_gates * width))
        for direction in self.input:
            nn.init.orthogonal_(direction)

    def forward(self, x: Tensor) -> Tensor:
        """float[2, M, N, C] -> float[2, M, N, n H]: the product with the input, plus the biases."""
        return torch.baddbmm(self.bias.view(2, 1, -1), x.flatten(1, 2), self.input).unflatten(1, x.shape[1:3])
