"""DCSAN by its equations, a character at a time."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cige.data.vocabulary import USER
from cige.lattice.lattice import Lattice
from cige.models.model import LatticeModel


def softmax(scores: list[float]) -> list[float]:
    top = max(scores)
    powers = [math.exp(s - top) for s in scores]
    return [p / sum(powers) for p in powers]


class Slow:
    """Eq. 1-22 for one sentence, a character at a time."""

    def __init__(self, model: LatticeModel, lattice: Lattice):
        self.model, self.lattice, self.config = model, lattice, model.config
        self.weights = {k: v.detach() for k, v in model.tagger.encoder.state_dict().items()}
        self.n = lattice.n_chars

    def linear(self, name: str, x: Tensor) -> Tensor:
        y = self.weights[f"{name}.weight"] @ x
        return y + self.weights[f"{name}.bias"] if f"{name}.bias" in self.weights else y

    def row(self, table: str, k: int) -> Tensor:
        both = torch.cat([self.weights[f"embeddings.{table}.tuned"], self.weights[f"embeddings.{table}.fixed"].float()])
        return both[k]

    def char_row(self, t: int) -> int:
        return int(self.model.vocabulary.encode(self.lattice).chars[t])

    def member(self, word: tuple[int, int, int]) -> tuple[Tensor, float]:
        """Vector and z of a word of the lattice."""
        if word[2] >= self.lattice.n_base:
            return self.row("word", USER), float(self.model.vocabulary.user_count)
        return self.row("word", self.model.vocabulary.word_rows[word[2]]), float(
            self.model.vocabulary.word_counts[word[2]]
        )

    def word_features(self, t: int) -> Tensor:
        """y_t of Eq. 3-5."""
        sets: list[list[tuple[Tensor, float]]] = [[], [], [], []]
        for start, end, word_id in self.lattice.words.tolist():
            if start <= t < end:
                k = 0 if start == t else 2 if end == t + 1 else 1
                sets[k].append(self.member((start, end, word_id)))
        none = self.weights["soft_lexicon.none"]
        sets[3] = [(self.row("char_word", self.char_row(t)), 1.0)]
        sets = [group or [(none, 1.0)] for group in sets]
        b = self.config.smoothing
        if self.config.weighting == "smoothed":
            total = sum(z + b for group in sets for _, z in group)
            return torch.cat([sum((z + b) / total * e for e, z in group) for group in sets])
        sets = [[(e, z if any(x for _, x in group) else 1.0) for e, z in group] for group in sets]
        total = sum(z for group in sets for _, z in group)
        return torch.cat([sum(4 * z / total * e for e, z in group) for group in sets])

    def cross(self, chars: list[Tensor], words: list[Tensor]) -> list[Tensor]:
        """Eq. 7-10."""
        asking, answering = (words, chars) if self.config.cross_query == "words" else (chars, words)
        if self.config.cross_activation:
            asking, answering = ([torch.clamp(x, min=0) for x in side] for side in (asking, answering))
        d = self.config.width // self.config.n_cross_heads
        self.cross_map = torch.zeros(self.config.n_cross_heads, self.n, self.n)
        out = []
        for t in range(self.n):
            heads = []
            for h in range(self.config.n_cross_heads):
                part = slice(h * d, (h + 1) * d)
                query = self.linear("cross.query", asking[t])[part]
                keys = [self.linear("cross.key", answering[j])[part] for j in range(self.n)]
                shares = softmax([float(query @ key) / math.sqrt(d) for key in keys])
                self.cross_map[h, t] = torch.tensor(shares)
                values = [self.linear("cross.value", answering[j])[part] for j in range(self.n)]
                heads.append(sum(p * v for p, v in zip(shares, values, strict=True)))
            inter = torch.cat(heads)
            if self.config.cross_output_projection:
                inter = self.linear("cross.output", inter)
            out.append(self.linear("cross.merge", torch.cat([chars[t], inter])))
        return out

    def fused(self, char: Tensor, word: Tensor) -> Tensor:
        """Eq. 11-14."""
        if self.config.fusion == "sum":
            return char + word
        h_c, h_w = torch.tanh(self.linear("fusion.char", char)), torch.tanh(self.linear("fusion.word", word))
        g = torch.sigmoid(self.linear("fusion.gate", torch.cat([h_c, h_w])))
        assert len(g) == (1 if self.config.fusion == "gate" else self.config.width)
        self.gates.append(float(g.mean()))
        return g * char + (1 - g) * word

    def encoding(self, distance: int, width: int) -> Tensor:
        """Eq. 17-18."""
        half = width // 2
        if self.config.reverse_distance:
            distance = -distance
        if self.config.sinusoid == "concatenated":
            angles = [distance * 10000 ** (-i / (half - 1)) for i in range(half)]
            return torch.tensor([math.sin(a) for a in angles] + [math.cos(a) for a in angles])
        angles = [distance / 10000 ** (2 * i / width) for i in range(half)]
        return torch.tensor([wave(a) for a in angles for wave in (math.sin, math.cos)])

    def normalised(self, name: str, x: Tensor) -> Tensor:
        scaled = (x - x.mean()) / torch.sqrt(((x - x.mean()) ** 2).mean() + 1e-5)
        return scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def layer(self, name: str, x: list[Tensor]) -> list[Tensor]:
        """Eq. 15-16 and 19-22."""
        n_heads = self.config.n_self_heads
        d = self.config.width // n_heads
        u, v = self.weights[f"{name}.attention.u"], self.weights[f"{name}.attention.v"]
        out = []
        for t in range(self.n):
            heads = []
            for h in range(n_heads):
                part = slice(h * d, (h + 1) * d)
                query = self.linear(f"{name}.attention.query", x[t])[part]
                scores = []
                for j in range(self.n):
                    key, r = x[j][part], self.encoding(t - j, d)
                    position = query @ r + u[h] @ key + v[h] @ r  # Eq. 19
                    scores.append(float(query @ key + position))
                values = [self.linear(f"{name}.attention.value", x[j])[part] for j in range(self.n)]
                heads.append(sum(p * value for p, value in zip(softmax(scores), values, strict=True)))
            o = torch.cat(heads)
            if self.config.self_output_projection:
                o = self.linear(f"{name}.attention.output", o)
            r_c = self.normalised(f"{name}.attention_norm", o + x[t])
            ffn = self.linear(f"{name}.ff_out", torch.clamp(self.linear(f"{name}.ff_in", r_c), min=0))
            out.append(self.normalised(f"{name}.ff_norm", ffn + r_c))
        return out

    def features(self) -> Tensor:
        """float[T, D]."""
        self.gates: list[float] = []
        x = [self.linear("char_projection", self.row("char", self.char_row(t))) for t in range(self.n)]
        if self.config.use_words:
            words = [self.linear("word_projection", self.word_features(t)) for t in range(self.n)]
            updated = self.cross(x, words) if self.config.cross_attention else x
            x = [self.fused(char, word) for char, word in zip(updated, words, strict=True)]
        for k in range(self.config.n_layers if self.config.self_attention else 0):
            x = self.layer(f"layers.{k}", x)
        return torch.stack(x)
