"""LR-CNN: convolutions over characters with one word length per layer, repeated with feedback from the top layer.

Gui, Ma, Zhang, Zhao, Jiang, Huang: "CNN-Based Chinese NER with Lexicon Rethinking", IJCAI 2019.

    X_3  [南京市长]  ..                 words of 4 characters: 长江大桥      --+ F, the output of the top layer, is
    X_2  [南京市] [京市长]  ..          words of 3 characters: 南京市        <-+ an input of the gates of every layer
    X_1  [南京] [京市] [市长]  ..       words of 2 characters: 南京, 市长    <-+ in the next pass
    X_0   南    京    市    长  ..

§3.1  convolution       C_l = tanh(conv of two neighbours of the layer below), for a window of l + 1 characters
      StreamGate        u = tanh(W [C; w]); X_l = weighted sum of u and C, elementwise, with a softmax over sigmoids as
                        weights; w is the word of l + 1 characters that fills the window
§3.2  rethinking        repeat all layers with F = X of the top layer as a third summand; n_passes in total
      scale attention   weights of X_0 to X_L by a small network over their sums; their weighted mean -> CRF

The paper's scores are those of the released code, which has more parts than these equations, and so has the default
here: a second stream whose windows end with the character instead of beginning with it (`both_directions`); from the
second layer on, two more streams, which convolve X_0 directly to the full window (`shortcuts`); a matrix G in every
gate, which is self-attention over each layer's states, gated with the previous G (`global_state`); convolutions of the
layers' states rather than of convolutions (`convolve_states`); and positions in addition to characters. X_l is the sum
of its streams. `EQUATIONS` turns all of these off. Gates are shared by the layers, but each stream has its own. The
released code does not register the convolutions with its optimiser, so they kept their initial weights; here all layers
are trained.

The released code reads at most one word per position and layer, and no words longer than the widest window. Here,
several words at one position are averaged, and longer words are read with the top layer where they begin and end
(`long_words`). Gates are initialised by Xavier's normal method and zero, the other layers as in PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cige.data.batch import LatticeBatch
from cige.models.config import ModelConfig
from cige.models.encoder import LatticeEncoder
from cige.nn.char_features import CharFeatures
from cige.nn.dropout import Dropout
from cige.nn.embeddings import InputSizes
from cige.nn.masked_attention import masked_attention
from cige.nn.sinusoid import sinusoid

FORWARD, BACKWARD = range(2)  # whether a window begins or ends with its character


@dataclass(frozen=True, kw_only=True)
class LrCnnConfig(ModelConfig):
    """LR-CNN's settings; widths and probabilities are those of the released code."""

    use_bigrams: bool = False
    """Whether to read character bigrams in addition to characters."""
    use_words: bool = True
    """False leaves words out of the gates: the same model without words."""
    width: int = 128
    """Width of the states."""
    n_layers: int = 3
    """Layers above X_0; layer l reads words of l + 1 characters."""
    n_passes: int = 2
    """Number of passes over all layers; 1 means no rethinking."""
    use_positions: bool = True
    """Whether to read sinusoids of a character's position in addition to its vector."""
    position_width: int = 30
    """Width of these sinusoids, an even number."""
    both_directions: bool = True
    """Whether there are windows that end with a character, in addition to those that begin with it."""
    shortcuts: bool = True
    """Whether layers from the second on also convolve X_0 directly to the full window."""
    global_state: bool = True
    """Whether gates read G, self-attention over the layers' states."""
    convolve_states: bool = True
    """Convolve X of the layer below; False convolves its C (as in the equations), which does not depend on words."""
    long_words: bool = True
    """Read words longer than the widest window with the top layer; the released code leaves them out."""
    state_dropout_prob: float = 0.5
    """Dropout on the inputs of convolutions, and in the scale attention."""
    attention_dropout_prob: float = 0.1
    """Dropout on the probabilities and the output of the self-attention."""
    output_dropout_prob: float = 0.0
    """Dropout before the tag scores; the released code has none."""

    def problems(self) -> list[str]:
        found = []
        if self.n_layers < 2:
            found.append("model.n_layers is 1, expected 2 or more: a single layer has no layer above it")
        if self.position_width % 2:
            found.append(f"model.position_width is {self.position_width}, expected an even number")
        return found


EQUATIONS: dict[str, Any] = {
    "use_positions": False,
    "both_directions": False,
    "shortcuts": False,
    "global_state": False,
    "convolve_states": False,
    "long_words": False,
}
"""Settings of the paper's equations only; a character then reads nothing on its left."""


class LrCnnEncoder(LatticeEncoder[LrCnnConfig]):
    """Encodes a lattice batch to character features."""

    def __init__(self, *, config: LrCnnConfig, sizes: InputSizes, features: CharFeatures | None = None):
        super().__init__(config, sizes, features, words=config.use_words)
        width, word_width = config.width, self.embeddings.word_width
        n_inputs = self.char_width + (config.position_width if config.use_positions else 0)
        self.input = nn.Linear(n_inputs, width)
        self.directions = (FORWARD, BACKWARD) if config.both_directions else (FORWARD,)
        self.layers = nn.ModuleList(Windows(config, layer + 1) for layer in range(config.n_layers))
        n_streams = len(self.directions) * (2 if config.shortcuts else 1)
        self.gates = nn.ModuleList(StreamGate(config, word_width) for _ in range(n_streams))
        self.whole = GlobalState(config) if config.global_state else None
        self.scales = ScaleAttention(config)
        self.no_word = None
        if config.use_words:
            self.no_word = nn.Parameter(torch.empty(word_width).uniform_(-1, 1) * (3 / word_width) ** 0.5)
        self.dropout, self.input_dropout = Dropout(config.state_dropout_prob), Dropout(config.embed_dropout_prob)
        self.out_width = width

    def forward(self, batch: LatticeBatch) -> Tensor:
        """float[B, T, width]."""
        return self._encode(batch)[0]

    def read_words(self, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """Character features, and each word's share float[B, T, W] of the characters where it begins and ends.

        In a layer, it is the weight of u, which the word is an input of, averaged over the streams and the elements of
        a state; layers are weighted by the scale attention. All weights are those of the last pass.
        """
        features, scales, streams = self._encode(batch)
        if not self.config.use_words:
            return self.without_words(features, batch)
        slots = word_slots(batch, n_layers=self.config.n_layers, long_words=self.config.long_words).to(features)
        shares = features.new_zeros(*features.shape[:2], batch.words.shape[1])
        for layer, of_layer in enumerate(streams):
            for k, weight in enumerate(of_layer):
                of_word = weight[:, :, None] * slots[self.directions[k % len(self.directions)], layer]
                shares = shares + scales[:, :, layer + 1, None] * of_word / len(of_layer)
        return features, shares * batch.char_mask[:, :, None]

    def _encode(self, batch: LatticeBatch) -> tuple[Tensor, Tensor, list[list[Tensor]]]:
        """Character features, weights of X_0 to X_L float[B, T, L + 1], and the weight of u float[B, T] of each
        layer's streams."""
        chars = self.read_chars(batch)
        if self.config.use_positions:
            place = torch.arange(1, chars.shape[1] + 1, device=chars.device)
            position = sinusoid(place, self.config.position_width, "interleaved").to(chars)
            chars = torch.cat([chars, self.input_dropout(position.expand(len(chars), -1, -1))], -1)
        bottom = torch.tanh(self.input(chars)) * batch.char_mask[:, :, None]  # X_0
        words = self._words(batch)
        feedback: Tensor | None = None
        for _ in range(self.config.n_passes):
            states, streams = self._read(bottom, words, feedback, batch.char_mask)
            feedback = states[-1]
        out, scales = self.scales(torch.stack(states, 2))
        return out, scales, streams

    def _words(self, batch: LatticeBatch) -> Tensor | None:
        """float[2, L, B, T, word_width]: the word vector that each layer reads at each character, per direction."""
        if self.no_word is None:
            return None
        vectors = self.embeddings.words(batch)
        slots = word_slots(batch, n_layers=self.config.n_layers, long_words=self.config.long_words).to(vectors)
        is_empty = slots.sum(-1, keepdim=True) == 0
        return slots @ vectors + is_empty * self.no_word

    def _read(
        self, bottom: Tensor, words: Tensor | None, feedback: Tensor | None, mask: Tensor
    ) -> tuple[list[Tensor], list[list[Tensor]]]:
        """One pass: X_0 to X_L, each float[B, T, width], and the weight of u in each layer and stream."""
        states = [bottom]
        shares: list[list[Tensor]] = []
        whole = self.whole(bottom, None, mask) if self.whole is not None else None
        source = self.dropout(bottom)
        below = [source for _ in self.directions]  # the next input of each direction's convolution
        for layer, convolve in enumerate(self.layers):
            convolved = convolve(below, source)
            streams = []
            for k, own in enumerate(convolved):
                inputs = [words[self.directions[k % len(self.directions)], layer]] if words is not None else []
                inputs += [whole] if whole is not None else []
                streams.append(self.gates[k](own, inputs, feedback))
            state = torch.stack([out for out, _ in streams]).sum(0) * mask[:, :, None]
            states.append(state)
            shares.append([share for _, share in streams])
            if self.whole is not None and layer + 1 < self.config.n_layers:
                whole = self.whole(state, whole, mask)
            if self.config.convolve_states:
                below = [self.dropout(state)] * len(self.directions)
            else:
                below = [self.dropout(own * mask[:, :, None]) for own in convolved[: len(self.directions)]]
        return states, shares


class Windows(nn.Module):
    """§3.1, the convolutions of one layer: C of each stream, first of both directions, then of their shortcuts."""

    def __init__(self, config: LrCnnConfig, layer: int):
        super().__init__()
        width, n_directions = config.width, 2 if config.both_directions else 1
        n_shortcuts = n_directions if config.shortcuts and layer > 1 else 0
        self.neighbours = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(n_directions))
        self.shortcuts = nn.ModuleList(nn.Linear((layer + 1) * width, width) for _ in range(n_shortcuts))
        # A state is stored at the start of its window, or at its end for a backward convolution in the first layer.
        reach = layer if config.convolve_states else 1
        self.neighbour_offsets = ([0, 1], [-reach, 1 - reach])
        self.shortcut_offsets = (list(range(layer + 1)), list(range(-layer, 1)))

    def forward(self, below: list[Tensor], bottom: Tensor) -> list[Tensor]:
        """float[B, T, width] for each stream, from the layers below each direction and from X_0."""
        neighbours = zip(self.neighbours, below, self.neighbour_offsets, strict=False)
        shortcuts = zip(self.shortcuts, self.shortcut_offsets, strict=False)
        return [
            *(torch.tanh(linear(windows(x, offsets))) for linear, x, offsets in neighbours),
            *(torch.tanh(linear(windows(bottom, offsets))) for linear, offsets in shortcuts),
        ]


def windows(x: Tensor, offsets: list[int]) -> Tensor:
    """float[B, T, D] -> float[B, T, n * D]: row t is the concatenation of rows t + offset, zeros outside the text."""
    left, n_chars = max(0, -min(offsets)), x.shape[1]
    padded = F.pad(x, (0, 0, left, max(0, max(offsets))))
    return torch.cat([padded[:, left + offset : left + offset + n_chars] for offset in offsets], -1)


def word_slots(batch: LatticeBatch, *, n_layers: int, long_words: bool = True) -> Tensor:
    """float[2, L, B, T, W]: a word's share of the word vector that layer l reads at a character, per direction.

    Forward, a word is read where it begins, and backward where it ends. Rows sum to 1, or to 0 if there is no word.
    """
    length = batch.word_ends - batch.word_starts  # [B, W]
    layer = torch.arange(2, n_layers + 2, device=length.device)[:, None, None]  # its words' characters
    is_read = (length.clamp(max=n_layers + 1) if long_words else length) == layer  # [L, B, W]
    is_read = is_read & batch.word_mask
    position = torch.arange(batch.chars.shape[1], device=length.device)[:, None]  # [T, 1]
    at = torch.stack([batch.word_starts[:, None] == position, batch.word_ends[:, None] - 1 == position])
    slots = (at[:, None] & is_read[:, :, None]).float()
    return slots / slots.sum(-1, keepdim=True).clamp(min=1)


class StreamGate(nn.Module):
    """The gate of one stream: a weighted sum of u = tanh(..), C and F, from a convolution C, the word, G and F."""

    def __init__(self, config: LrCnnConfig, word_width: int):
        super().__init__()
        width = config.width
        in_width = width * (2 if config.global_state else 1) + (word_width if config.use_words else 0)
        n_values = 3 if config.n_passes > 1 else 2
        self.sums = nn.Linear(in_width, (1 + n_values) * width)  # of u, then of the gates of u, C and F
        self.feedback = nn.Linear(width, n_values * width) if config.n_passes > 1 else None
        for linear in (self.sums, self.feedback):
            if linear is not None:
                nn.init.zeros_(linear.bias)
                for block in linear.weight.data.split(width):
                    nn.init.xavier_normal_(block)

    def forward(self, convolved: Tensor, inputs: list[Tensor], feedback: Tensor | None) -> tuple[Tensor, Tensor]:
        """float[B, T, width], and the weight of u, the mean of its numbers: float[B, T]."""
        width, n_sums = convolved.shape[-1], 3 if feedback is None else 4
        rows = slice(0, n_sums * width)
        sums = F.linear(torch.cat([convolved, *inputs], -1), self.sums.weight[rows], self.sums.bias[rows])
        gates, values = sums[..., width:], [torch.tanh(sums[..., :width]), convolved]
        if feedback is not None and self.feedback is not None:
            gates = gates + self.feedback(feedback)
            values.append(feedback)
        weights = torch.softmax(torch.sigmoid(gates.unflatten(-1, (-1, width))), -2)  # [B, T, 2 or 3, width]
        return (weights * torch.stack(values, -2)).sum(-2), weights[..., 0, :].mean(-1)


class GlobalState(nn.Module):
    """G: self-attention with one head over a layer's states; from the second layer on gated with the previous G."""

    def __init__(self, config: LrCnnConfig):
        super().__init__()
        width = config.width
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.norm = nn.LayerNorm(width)
        self.update = nn.Linear(2 * width, width)
        self.dropout = Dropout(config.attention_dropout_prob)
        for linear in (self.query, self.key, self.value, self.output):
            nn.init.xavier_normal_(linear.weight)

    def forward(self, states: Tensor, before: Tensor | None, mask: Tensor) -> Tensor:
        """float[B, T, width] of a layer's states and of G before -> G."""
        query = self.query(states) * states.shape[2] ** -0.5
        allowed = mask[:, None].expand(-1, states.shape[1], -1)
        read, _ = masked_attention(
            query[:, None], self.key(states)[:, None], self.value(states)[:, None], allowed, dropout=self.dropout
        )
        read = self.norm(states + self.dropout(self.output(read)))
        if before is None:
            return read
        gate = torch.sigmoid(self.update(torch.cat([read, before], -1)))
        return gate * read + (1 - gate) * before


class ScaleAttention(nn.Module):
    """The weighted mean of the layers' states, with weights from a network over the sum of each layer's state."""

    def __init__(self, config: LrCnnConfig):
        super().__init__()
        n_states = config.n_layers + 1
        self.inner, self.outer = nn.Linear(n_states, n_states), nn.Linear(n_states, n_states)
        self.dropout = Dropout(config.state_dropout_prob)

    def forward(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """float[B, T, L + 1, width] -> float[B, T, width], and the weights float[B, T, L + 1]."""
        inner = torch.tanh(self.inner(self.dropout(states.sum(-1))))
        weights = torch.softmax(torch.tanh(self.outer(self.dropout(inner))), -1)
        return (weights[:, :, None] @ states).squeeze(2), weights
