"""Lattice-BERT: one Transformer that reads the characters of a text and every word over them, with BERT's training.

Lai, Liu, Feng, Huang, Zhao: "Lattice-BERT: Leveraging Multi-Granularity Representations in Chinese Pre-trained
Language Models", NAACL 2021.

    [CLS] 研 究 研究 生 研究生 生活 活 ... [SEP]       tokens: characters (word pieces) and words            §2.2
    0     1  2  1    3  1      3    4  ...           start, by character; end is inclusive

§2.1, 2.6  LatticeBertLayer        post-LN Transformer layer with GELU; the embedding matrix is factorised (ALBERT)
§2.3       LatticePositionScores   Eq. 2: att + b + r, computed once and added to the scores of every layer
§2.4       LatticeBertForPreTraining, in heads.py

The default is the paper's form. The released code differs in two settings, which are in RELEASED: `position_scale`
(1 / sqrt(d_k) where the paper has 1 / sqrt(2 d_k), for content and positions) and `relations` (the relation of two
tokens with a shared edge). BASELINE has the settings of the paper's BERT-our, which reads only characters. The
ablations are `relations=None` (-Rel), `distances=False` (-Dis) and `embedding_width=None` (-EmbDe).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from cige.lattice_bert.encoder.lattice_positions import LatticePositionScores
from cige.lattice_bert.encoder.network_config import BASELINE, RELEASED, SIZES, LatticeBertConfig
from cige.lattice_bert.encoder.scored_attention import scored_attention, scored_probabilities
from cige.lattice_bert.encoder.token_batch import TokenBatch
from cige.nn.dropout import Dropout
from cige.nn.fused_attention import fused_attention
from cige.nn.masked_attention import by_head

if TYPE_CHECKING:
    from cige.lattice_bert.encoder.word_adapter import WordAdapter

__all__ = ["BASELINE", "RELEASED", "SIZES", "LatticeBert", "LatticeBertConfig", "LatticeBertOutput"]

ChangeAfter = tuple[int, Callable[[Tensor], Tensor]]
_NO_CHANGE: ChangeAfter = (0, lambda hidden: hidden)
LAYER_NORM_EPS = 1e-12
INITIAL_SD = 0.02


@dataclass(frozen=True)
class LatticeBertOutput:
    """The output of the last layer."""

    hidden: Tensor  # [B, N, D] for every token, or [B, M, D] for the M requested rows
    pooled: Tensor  # [B, D], the pooled vector of [CLS]


class LatticeBert(nn.Module):
    """Encodes token lattices to one vector per token.

    Attributes:
        adapter: what reads words in an encoder of characters, as an alternative to words at the input; None at first.
        recomputes_layers: whether training keeps only the input of each layer and computes the rest again for the
            gradient (gradient checkpointing): less memory, a third more computation, the same gradient.
    """

    recomputes_layers = False

    def __init__(self, config: LatticeBertConfig):
        super().__init__()
        if problems := config.problems():
            raise ValueError(f"this Lattice-BERT cannot be built: {'; '.join(problems)}")
        self.config = config
        self.embeddings = LatticeBertEmbeddings(config)
        self.positions = LatticePositionScores(
            n_heads=config.n_heads,
            head_width=config.head_width,
            position_width=config.position_width,
            max_positions=config.max_positions,
            scale=config.scale,
            relations=config.relations,
            distances=config.distances,
            clip_distance=config.clip_distance,
            cls_reset=config.cls_reset,
        )
        self.layers = nn.ModuleList(LatticeBertLayer(config) for _ in range(config.n_layers))
        self.pooler = nn.Linear(config.width, config.width)
        self.adapter: WordAdapter | None = None
        initialise(self)

    def copy_with(self, adapter: WordAdapter) -> LatticeBert:
        """A copy of this encoder, which must be one of characters alone, that reads words by an adapter."""
        copied = LatticeBert(self.config)
        copied.load_state_dict(self.state_dict())
        copied.adapter = adapter
        return copied

    @property
    def token_tables(self) -> list[tuple[nn.Module, str]]:
        """The modules and attributes of the tables of token vectors, whose rows are numbered one after another."""
        tables: list[tuple[nn.Module, str]] = [(self.embeddings, "tokens")]
        return tables if self.adapter is None else [*tables, (self.adapter, "words")]

    def forward(self, batch: TokenBatch, rows: Tensor | None = None) -> LatticeBertOutput:
        """Encode a batch.

        Args:
            rows: int64[B, M], the tokens to return, where rows[:, 0] is [CLS] (0). The last layer computes only these,
                which gives the same vectors at a sixth of that layer's cost if there are few.
        """
        hidden = self.encode(batch, rows)
        return LatticeBertOutput(hidden, torch.tanh(self.pooler(hidden[:, 0])))

    def encode(self, batch: TokenBatch, rows: Tensor | None = None, change: ChangeAfter | None = None) -> Tensor:
        """float[B, N, D], or float[B, M, D] of `rows`, in any order; words that an adapter reads have zeros.

        Args:
            change: (number of a layer, from 1; what changes its output float[B, N, D]); not for an encoder with an
                adapter, which is a change of its own.
        """
        if self.adapter is None:
            return self._encode(batch, rows, change or _NO_CHANGE)
        if change is not None:
            raise ValueError("this encoder reads words by an adapter; a second change between layers is not possible")
        pieces, own_change = self._adapted(batch, self.adapter)
        if rows is None:
            return _spread(self._encode(pieces, None, own_change), batch)
        is_piece = _is_piece(batch).gather(1, rows)
        place = torch.where(is_piece, batch.starts.gather(1, rows), 0)
        return self._encode(pieces, place, own_change) * is_piece[:, :, None]

    def _adapted(self, batch: TokenBatch, adapter: WordAdapter) -> tuple[TokenBatch, ChangeAfter]:
        """The pieces of a batch, and what adds its words to their hidden vectors."""
        split, n_pieces = adapter.split(batch), self.embeddings.tokens.num_embeddings
        return split.pieces, (adapter.config.after_layer, partial(adapter, split=split, n_pieces=n_pieces))

    def _encode(self, batch: TokenBatch, rows: Tensor | None, change: ChangeAfter) -> Tensor:
        hidden, scores, n_layers = self.embeddings(batch), self._scores(batch), self.config.n_layers
        after_layer, changed = change
        for number, layer in enumerate(self.layers, start=1):
            is_changed = number == after_layer  # a change needs all rows
            hidden = self._through(layer, hidden, scores, rows if number == n_layers and not is_changed else None)
            if is_changed:
                hidden = changed(hidden)
        return _gathered(hidden, rows) if rows is not None and after_layer == n_layers else hidden

    def _through(self, layer: nn.Module, *inputs: Tensor | None) -> Tensor:
        if self.recomputes_layers and self.training and torch.is_grad_enabled():
            return checkpoint(layer, *inputs, use_reentrant=False)  # type: ignore[no-any-return]
        return layer(*inputs)  # type: ignore[no-any-return]

    @torch.no_grad()
    def attention_received(self, batch: TokenBatch) -> Tensor:
        """float[B, N]: the share of attention that each token gets, over all layers, heads and real tokens (Figure 4).

        It is 0 on padding, and on words that an adapter reads.
        """
        read, change = (batch, _NO_CHANGE) if self.adapter is None else self._adapted(batch, self.adapter)
        after_layer, changed = change
        hidden, scores, is_query = self.embeddings(read), self._scores(read), read.mask[:, None, :, None]
        total = torch.zeros(read.ids.shape, device=hidden.device)
        for number, module in enumerate(self.layers, start=1):
            layer = cast(LatticeBertLayer, module)
            total += (layer.attention.probabilities(hidden, scores) * is_query).sum((1, 2))
            hidden = layer(hidden, scores)
            if number == after_layer:
                hidden = changed(hidden)
        received = total / (self.config.n_layers * self.config.n_heads * read.n_tokens[:, None])
        return received if self.adapter is None else _spread(received[:, :, None], batch)[:, :, 0]

    def _scores(self, batch: TokenBatch) -> Tensor:
        scores = self.positions(batch)
        device = scores.device.type
        # Cast once here; autocast would cast it again in each layer.
        return scores.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else scores


class LatticeBertEmbeddings(nn.Module):
    """Token and type embeddings; positions are only used in attention."""

    def __init__(self, config: LatticeBertConfig):
        super().__init__()
        self.tokens = nn.Embedding(config.n_tokens, config.embedding_width or config.width)
        width = config.embedding_width
        self.projection = None if width is None else nn.Linear(width, config.width, bias=False)
        self.types = nn.Embedding(config.n_types, config.width)
        self.norm = nn.LayerNorm(config.width, eps=LAYER_NORM_EPS)
        self.dropout = Dropout(config.dropout_prob)

    def forward(self, batch: TokenBatch) -> Tensor:
        tokens = self.tokens(batch.ids)
        if self.projection is not None:
            tokens = self.projection(tokens)
        return self.dropout(self.norm(tokens + self.types(batch.types)))


class LatticeBertLayer(nn.Module):
    """Attention and a feed-forward network, each followed by a residual connection and layer normalisation."""

    def __init__(self, config: LatticeBertConfig):
        super().__init__()
        self.attention = LatticeAttention(config)
        self.attention_norm = nn.LayerNorm(config.width, eps=LAYER_NORM_EPS)
        self.ff_in = nn.Linear(config.width, config.inner_width)
        self.ff_out = nn.Linear(config.inner_width, config.width)
        self.ff_norm = nn.LayerNorm(config.width, eps=LAYER_NORM_EPS)
        self.dropout = Dropout(config.dropout_prob)

    def forward(self, hidden: Tensor, scores: Tensor, rows: Tensor | None = None) -> Tensor:
        """float[B, N, D], from float[B, N, D] and the position scores float[B, H, N, N]; only `rows`, if given."""
        queries = hidden
        if rows is not None:
            queries = _gathered(hidden, rows)
            scores = scores.gather(2, rows[:, None, :, None].expand(-1, scores.shape[1], -1, scores.shape[3]))
        queries = self.attention_norm(queries + self.dropout(self.attention(queries, hidden, scores)))
        changed = self.ff_out(F.gelu(self.ff_in(queries), approximate="tanh"))
        return self.ff_norm(queries + self.dropout(changed))


class LatticeAttention(nn.Module):
    """Eq. 1 with the scores of Eq. 2; the position scores are an input, and are the same for every layer."""

    def __init__(self, config: LatticeBertConfig):
        super().__init__()
        self.n_heads, self.scale = config.n_heads, config.scale
        self.query = nn.Linear(config.width, config.width)
        self.key = nn.Linear(config.width, config.width)
        self.value = nn.Linear(config.width, config.width)
        self.output = nn.Linear(config.width, config.width)
        self.dropout = Dropout(config.attention_dropout_prob)

    def forward(self, queries: Tensor, hidden: Tensor, scores: Tensor) -> Tensor:
        """float[B, M, D], from queries float[B, M, D], hidden float[B, N, D] and scores float[B, H, M, N]."""
        n_heads = self.n_heads
        query, key, value = (by_head(x, n_heads) for x in (self.query(queries), self.key(hidden), self.value(hidden)))
        if scores.device.type == "cpu" and scores.requires_grad:
            attended = scored_attention(query, key, value, scores, scale=self.scale, dropout=self.dropout)
        else:
            dropout_prob = self.dropout.prob if self.training else 0.0
            attended = fused_attention(query, key, value, scores, scale=self.scale, dropout_prob=dropout_prob)
        return self.output(attended.transpose(1, 2).flatten(2))

    def probabilities(self, hidden: Tensor, scores: Tensor) -> Tensor:
        """float[B, H, N, N]."""
        query, key = (by_head(x, self.n_heads) for x in (self.query(hidden), self.key(hidden)))
        return scored_probabilities(query, key, scores, scale=self.scale)


def _gathered(hidden: Tensor, rows: Tensor) -> Tensor:
    """float[B, M, D], the rows int64[B, M] of float[B, N, D]."""
    return hidden.gather(1, rows[:, :, None].expand(-1, -1, hidden.shape[2]))


def _spread(of_pieces: Tensor, batch: TokenBatch) -> Tensor:
    """float[B, N, D], the rows of pieces float[B, P, D] at the tokens of a batch; zeros for words and padding."""
    is_piece = _is_piece(batch)
    return _gathered(of_pieces, torch.where(is_piece, batch.starts, 0)) * is_piece[:, :, None]


def _is_piece(batch: TokenBatch) -> Tensor:
    """bool[B, N]: the tokens that are neither words nor padding."""
    return batch.mask & (batch.starts == batch.ends)


def initialise(module: nn.Module) -> None:
    """Initialise as in the released code: matrices from a truncated normal distribution, biases with 0."""
    for name, parameter in module.named_parameters():
        if parameter.ndim > 1:
            nn.init.trunc_normal_(parameter, std=INITIAL_SD, a=-2 * INITIAL_SD, b=2 * INITIAL_SD)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
