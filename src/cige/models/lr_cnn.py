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

The sentences of a batch are one sequence without padding, with rows of zeros between them that no window can bridge.
Whatever depends on X_0 and words alone, but not on F, is computed in the first pass: the convolutions of X_0, their and
the words' parts of the gates, and G of the first layer. While dropout is active, each pass draws its own, and only the
words' parts are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cige.data.batch import LatticeBatch
from cige.models.encoder import LatticeEncoder
from cige.models.lr_cnn_config import LrCnnConfig
from cige.nn.char_features import CharFeatures
from cige.nn.dropout import Dropout
from cige.nn.embeddings import InputSizes, no_word_vector
from cige.nn.gated_sum import gated_shares, gated_sum, quick_tanh
from cige.nn.masked_attention import masked_attention
from cige.nn.modules_of import ModulesOf
from cige.nn.ragged import RealRows, SpacedRows, spaced_rows
from cige.nn.sinusoid import sinusoid

FORWARD, BACKWARD = range(2)  # whether a window begins or ends with its character


class LrCnnEncoder(LatticeEncoder[LrCnnConfig]):
    def __init__(self, *, config: LrCnnConfig, sizes: InputSizes, features: CharFeatures | None = None):
        super().__init__(config, sizes, features, words=config.use_words)
        width, word_width = config.width, self.embeddings.word_width
        n_inputs = self.char_width + (config.position_width if config.use_positions else 0)
        self.input = nn.Linear(n_inputs, width)
        self.directions = (FORWARD, BACKWARD) if config.both_directions else (FORWARD,)
        self.layers = ModulesOf[Windows](Windows(config, layer + 1) for layer in range(config.n_layers))
        n_streams = len(self.directions) * (2 if config.shortcuts else 1)
        self.gates = ModulesOf[StreamGate](StreamGate(config, word_width) for _ in range(n_streams))
        self.whole = GlobalState(config) if config.global_state else None
        self.scales = ScaleAttention(config)
        self.no_word = no_word_vector(word_width) if config.use_words else None
        self.dropout, self.input_dropout = Dropout(config.state_dropout_prob), Dropout(config.embed_dropout_prob)
        self.out_width = width

    def read_words(self, batch: LatticeBatch) -> tuple[Tensor, Tensor]:
        """Character features, and each word's share float[B, T, W] of the characters where it begins and ends.

        In a layer, it is the weight of u, which the word is an input of, averaged over the streams and the elements of
        a state; layers are weighted by the scale attention. All weights are those of the last pass.
        """
        features, scales, streams, rows = self.encode(batch)
        if not self.config.use_words:
            return self.without_words(features, batch)
        n_chars = features.shape[1]
        slots = word_slots(batch, n_layers=self.config.n_layers, long_words=self.config.long_words).to(features)
        shares = features.new_zeros(*features.shape[:2], batch.words.shape[1])
        for layer, of_layer in enumerate(streams):
            of_scale = scales[:, layer + 1]
            for k, gates in enumerate(of_layer):
                weight = gated_shares(gates, gates.shape[1] // self.config.width)[:, 0].mean(-1)  # [N]
                weight = rows.pad(of_scale * weight)[:, :n_chars, None] / len(of_layer)
                shares = shares + weight * slots[self.directions[k % len(self.directions)], layer]
        return features, shares * batch.char_mask[:, :, None]

    def encode(self, batch: LatticeBatch) -> tuple[Tensor, Tensor, list[list[Tensor]], RealRows]:
        """Character features, weights of X_0 to X_L float[N, L + 1], the gates float[N, n_values * width] of each
        layer's streams in the last pass (of u, C and, if there is an earlier pass, F), and the N rows of the batch."""
        chars = self.read_chars(batch)
        if self.config.use_positions:
            place = torch.arange(1, chars.shape[1] + 1, device=chars.device)
            position = sinusoid(place, self.config.position_width, "interleaved").to(chars)
            chars = torch.cat([chars, self.input_dropout(position.expand(len(chars), -1, -1))], -1)
        spaced = spaced_rows(batch.char_mask, gap=self.config.n_layers)
        packed = spaced.pack(chars)
        bottom = torch.tanh(self.input(packed)) * spaced.is_real[:, None]  # X_0
        of_words = self._words_in_gates(batch, spaced.rows)
        from_bottom = self._from_bottom(bottom, of_words, spaced)
        feedback: Tensor | None = None
        for k in range(self.config.n_passes):
            if k > 0 and self._draws:
                from_bottom = self._from_bottom(bottom, of_words, spaced)
            states, gates = self._read(from_bottom, of_words, feedback, spaced)
            feedback = states[-1]
        out, scales = self.scales(torch.stack(states, 1))
        return spaced.rows.pad(out)[:, : chars.shape[1]], scales, gates, spaced.rows

    @property
    def _draws(self) -> bool:
        """Whether dropout is active, which differs from pass to pass."""
        return self.training and (self.config.state_dropout_prob > 0 or self.config.attention_dropout_prob > 0)

    def _words_in_gates(self, batch: LatticeBatch, rows: RealRows) -> list[list[Tensor]]:
        """What words add to the gates of each layer and stream, with the bias: float[N, D] or, without words, [D]."""
        n_layers, n_directions = self.config.n_layers, len(self.directions)
        if self.no_word is None:
            return [[gate.sums.bias for gate in self.gates] for _ in range(n_layers)]
        vectors = self.embeddings.words(batch)
        slots = word_slots(batch, n_layers=n_layers, long_words=self.config.long_words).to(vectors)
        is_empty = slots.sum(-1, keepdim=True) == 0
        read = slots @ vectors + is_empty * self.no_word  # [2, L, B, T, word_width]
        n_chars, n_spaced = slots.shape[3], rows.numbers.shape[1]
        char = (rows.places % n_spaced).clamp(max=max(0, n_chars - 1))  # a gap has the words of any character
        by_char = read.flatten(2, 3).index_select(2, rows.sentence * n_chars + char)  # [2, L, N, word_width]
        return [
            [gate.of_words(by_char[self.directions[k % n_directions], layer]) for k, gate in enumerate(self.gates)]
            for layer in range(n_layers)
        ]

    def _from_bottom(self, bottom: Tensor, of_words: list[list[Tensor]], spaced: SpacedRows) -> FromBottom:
        source = self.dropout(bottom)
        whole = self.whole(bottom, None, spaced) if self.whole is not None else None
        n_directions = len(self.directions)
        streams: list[list[Stream]] = []
        for layer, windows in enumerate(self.layers):
            own = windows.of_neighbours([source] * n_directions) if layer == 0 else windows.of_shortcuts(source)
            first = 0 if layer == 0 else n_directions  # the number of the first of these streams
            of_stream = zip(list(self.gates)[first:], of_words[layer][first:], own, strict=False)
            sums = [(gate, x, gate.add_own(words, x)) for gate, words, x in of_stream]
            streams.append([Stream(x, gate.add_whole(y, whole) if layer == 0 else y) for gate, x, y in sums])
        return FromBottom(bottom, source, whole, streams)

    def _read(
        self, given: FromBottom, of_words: list[list[Tensor]], feedback: Tensor | None, spaced: SpacedRows
    ) -> tuple[list[Tensor], list[list[Tensor]]]:
        """One pass: X_0 to X_L, each float[N, width], and the gates of each layer and stream."""
        n_values = 2 if feedback is None else 3
        states, whole, below = [given.bottom], given.whole, [given.source] * len(self.directions)
        fed = [gate.feedback(feedback) if feedback is not None and gate.feedback else None for gate in self.gates]
        shares: list[list[Tensor]] = []
        for layer, windows in enumerate(self.layers):
            streams = given.streams[layer]
            if layer > 0:
                of_neighbours = zip(self.gates, of_words[layer], windows.of_neighbours(below), strict=False)
                of_shortcuts = zip(list(self.gates)[len(below) :], streams, strict=False)
                streams = [
                    Stream(x, gate.add_whole(gate.add_own(words, x, n_values), whole, n_values, in_place=True))
                    for gate, words, x in of_neighbours
                ]
                streams += [
                    Stream(own.convolved, gate.add_whole(own.sums, whole, n_values)) for gate, own in of_shortcuts
                ]
            outputs, gates = [], []
            for stream, of_feedback in zip(streams, fed, strict=False):
                of_u, of_gates = stream.sums.split([self.config.width, stream.sums.shape[1] - self.config.width], 1)
                of_gates = of_gates[:, : n_values * self.config.width]
                gates.append(of_gates if of_feedback is None else of_feedback + of_gates)
                values = [quick_tanh(of_u), stream.convolved]
                outputs.append(gated_sum(gates[-1], *values, *([] if feedback is None else [feedback])))
            state = sum(outputs[1:], outputs[0]) * spaced.is_real[:, None]
            states.append(state)
            shares.append(gates)
            if self.whole is not None and layer + 1 < self.config.n_layers:
                whole = self.whole(state, whole, spaced)
            if self.config.convolve_states:
                below = [self.dropout(state)] * len(self.directions)
            else:
                neighbours = [stream.convolved for stream in streams[: len(self.directions)]]
                below = [self.dropout(own * spaced.is_real[:, None]) for own in neighbours]
        return states, shares


@dataclass(frozen=True)
class Stream:
    """C of a stream float[N, width], and the sums of u and of the gates so far float[N, (1 + n_values) * width]."""

    convolved: Tensor
    sums: Tensor


@dataclass(frozen=True)
class FromBottom:
    """What depends on X_0 and words alone.

    Attributes:
        bottom: X_0. source: X_0 after dropout. whole: G of the first layer.
        streams: for each layer, its streams that convolve X_0: all in the first layer, and shortcuts in the others.
    """

    bottom: Tensor
    source: Tensor
    whole: Tensor | None
    streams: list[list[Stream]]


class Windows(nn.Module):
    """§3.1, the convolutions of one layer: C of the layer below in both directions, and of their shortcuts."""

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

    def of_neighbours(self, below: list[Tensor]) -> list[Tensor]:
        """float[N, width] of each direction, from the layers below, float[N, width]."""
        convolved = zip(self.neighbours, below, self.neighbour_offsets, strict=False)
        return [quick_tanh(linear(windows(x, offsets))) for linear, x, offsets in convolved]

    def of_shortcuts(self, bottom: Tensor) -> list[Tensor]:
        """float[N, width] of each direction, from X_0."""
        convolved = zip(self.shortcuts, self.shortcut_offsets, strict=False)
        return [quick_tanh(linear(windows(bottom, offsets))) for linear, offsets in convolved]


def windows(x: Tensor, offsets: list[int]) -> Tensor:
    """float[N, D] -> float[N, n * D]: row t is the concatenation of rows t + offset, zeros outside."""
    left, n_rows = max(0, -min(offsets)), len(x)
    padded = F.pad(x, (0, 0, left, max(0, max(offsets))))
    return torch.cat([padded[left + offset : left + offset + n_rows] for offset in offsets], -1)


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
    """The gate of one stream: its sums over a convolution C, the word, G and F, part by part.

    They are those of u before its tanh and of the gates of u, C and F: float[N, (1 + n_values) * width].
    """

    def __init__(self, config: LrCnnConfig, word_width: int):
        super().__init__()
        self.width = width = config.width
        in_width = width * (2 if config.global_state else 1) + (word_width if config.use_words else 0)
        n_values = 3 if config.n_passes > 1 else 2
        self.sums = nn.Linear(in_width, (1 + n_values) * width)  # of u, then of the gates of u, C and F
        self.feedback = nn.Linear(width, n_values * width) if config.n_passes > 1 else None
        for linear in (self.sums, self.feedback):
            if linear is not None:
                nn.init.zeros_(linear.bias)
                for block in linear.weight.data.split(width):
                    nn.init.xavier_normal_(block)

    def of_words(self, words: Tensor) -> Tensor:
        """The bias and what words add, float[N, word_width]."""
        return F.linear(words, self.sums.weight[:, self.width : self.width + words.shape[1]], self.sums.bias)

    def add_own(self, sums: Tensor, convolved: Tensor, n_values: int | None = None) -> Tensor:
        """The sums and what C adds, of the first n_values or of all."""
        rows = slice(None if n_values is None else (1 + n_values) * self.width)
        return torch.addmm(sums[..., rows], convolved, self.sums.weight[rows, : self.width].t())

    def add_whole(
        self, sums: Tensor, whole: Tensor | None, n_values: int | None = None, *, in_place: bool = False
    ) -> Tensor:
        """The sums and what G adds, if there is a G, of the first n_values or of all."""
        rows = slice(None if n_values is None else (1 + n_values) * self.width)
        if whole is None:
            return sums[:, rows]
        weight = self.sums.weight[rows, -self.width :].t()
        if in_place:  # without a copy of the sums
            return sums.addmm_(whole.to(sums.dtype), weight.to(sums.dtype))
        return torch.addmm(sums[:, rows], whole, weight)


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

    def forward(self, states: Tensor, before: Tensor | None, spaced: SpacedRows) -> Tensor:
        """float[N, width] of a layer's states and of G before -> G."""
        allowed = spaced.is_padded_real[:, None].expand(-1, spaced.is_padded_real.shape[1], -1)
        query, key, value = (
            spaced.rows.pad(x)[:, None]
            for x in (self.query(states) * states.shape[1] ** -0.5, self.key(states), self.value(states))
        )
        read, _ = masked_attention(query, key, value, allowed, dropout=self.dropout)
        read = self.norm(states + self.dropout(self.output(spaced.rows.pack(read))))
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
        """float[N, L + 1, width] -> float[N, width], and the weights float[N, L + 1]."""
        inner = torch.tanh(self.inner(self.dropout(states.sum(-1))))
        weights = torch.softmax(torch.tanh(self.outer(self.dropout(inner))), -1)
        return (weights[:, None] @ states).squeeze(1), weights
