"""BiLstm: a bidirectional LSTM over concatenated sentences, in NumPy or C (see nn.recurrent)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cige.runtime.native import Library, n_threads
from cige.runtime.packed_linear import PackedLinear, parts_padded


class BiLstm:
    """The counterpart of nn.recurrent.BiRecurrent.

    Args:
        weights: all weights of the tagger.
        name: the prefix of the names of these layers.
        n_layers: number of stacked layers.
        library: the compiled runtime, or None for NumPy.
    """

    def __init__(self, weights: Mapping[str, np.ndarray], name: str, *, n_layers: int, library: Library | None):
        self._layers = [_Layer(weights, name, k, library) for k in range(n_layers)]

    def __call__(self, x: np.ndarray, n_chars: np.ndarray, wish: int | None = None) -> np.ndarray:
        """float32[sum of n_chars, C], int32[B] -> float32[sum of n_chars, D]: forward states, then backward states.

        `wish` is the number of threads, as in `native.n_threads`.
        """
        order = np.argsort(-n_chars, kind="stable")
        lengths, first = n_chars[order], (np.cumsum(n_chars) - n_chars)[order]
        for layer in self._layers:
            x = layer.read(x, first.astype(np.int32), lengths.astype(np.int32), wish)
        return x


class _Layer:
    """One layer, with its gates in PyTorch's order: i, f, g, o."""

    def __init__(self, weights: Mapping[str, np.ndarray], name: str, number: int, library: Library | None):
        def of(part: str) -> list[np.ndarray]:
            return [weights[f"{name}.{side}_layers.{number}.{part}_l0"] for side in ("forward", "backward")]

        self._library, self._recurrent = library, of("weight_hh")
        self.width = self._padded_width = self._recurrent[0].shape[1]
        inputs, biases = of("weight_ih"), [a + b for a, b in zip(of("bias_ih"), of("bias_hh"), strict=True)]
        if library is not None:
            panel = library.panel_width()
            self._padded_width = -(-self.width // panel) * panel
            forward, backward = (self._packed(weight, library).struct for weight in self._recurrent)
            self._struct = library.struct("Lstm", width=self._padded_width, forward=forward, backward=backward)
            library.model(lstm=self._struct)
            inputs, biases = ([parts_padded(x, 4, self._padded_width) for x in of_both] for of_both in (inputs, biases))
        self._input, self._bias = np.concatenate(inputs), np.concatenate(biases)

    def read(self, x: np.ndarray, first: np.ndarray, n_chars: np.ndarray, wish: int | None) -> np.ndarray:
        """float32[n, C] -> float32[n, 2 * width]; sentences are sorted by length, the longest first."""
        gates = x @ self._input.T + self._bias  # [n, 2 * 4 * padded width]
        if self._library is None:
            sides = np.split(gates, 2, axis=1)
            return np.concatenate([self._one_direction(k, sides[k], first, n_chars) for k in range(2)], 1)
        out = np.zeros((len(x), 2, self._padded_width), np.float32)
        run = self._library.struct(
            "LstmRun",
            n_sentences=len(n_chars),
            n_threads=n_threads(wish),
            first=first,
            n_chars=n_chars,
            inputs=np.ascontiguousarray(gates, np.float32),
            out=out,
        )
        if self._library.lstm_layer(self._struct, run):
            raise MemoryError("LSTM: no memory for a work buffer; use smaller batches")
        return out[:, :, : self.width].reshape(len(x), -1)

    def _one_direction(self, side: int, gates: np.ndarray, first: np.ndarray, n_chars: np.ndarray) -> np.ndarray:
        width = self.width
        state, cell = np.zeros((2, len(n_chars), width), np.float32)
        out = np.empty((len(gates), width), np.float32)
        for t in range(int(n_chars.max(initial=0))):
            running = int((n_chars > t).sum())
            rows = first[:running] + (n_chars[:running] - 1 - t if side else t)
            now = gates[rows] + state[:running] @ self._recurrent[side].T
            i, f, g, o = np.split(now, 4, axis=1)
            cell[:running] = _sigmoid(f) * cell[:running] + _sigmoid(i) * np.tanh(g)
            state[:running] = _sigmoid(o) * np.tanh(cell[:running])
            out[rows] = state[:running]
        return out

    def _packed(self, weight: np.ndarray, library: Library) -> PackedLinear:
        """Pack weights [4 width, width], for states padded to whole panels."""
        wide = np.zeros((len(weight), self._padded_width), np.float32)
        wide[:, : self.width] = weight
        return PackedLinear(library, wide, n_parts=4)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.maximum(x, -80)))
