"""A literal transcription of FLAT's Eq. 4-11: the reference that speed and values are compared with.

Every pair of nodes gets its four position vectors, their 4D concatenation, its own row of R and its own key W_kR R_ij.
It reads the weights of a `FlatEncoder` and returns what that returns.
"""

import torch
from torch import Tensor

from cige.data.batch import LatticeBatch
from cige.models.flat import FlatEncoder, FlatLayer, flat_view, sinusoid


def literal_encode(encoder: FlatEncoder, batch: LatticeBatch) -> Tensor:
    """float[B, T, D] for an encoder in the paper's form (four distances, residuals, no masks)."""
    config = encoder.config
    chars = encoder.char_projection(encoder.read_chars(batch, with_words=encoder.config.reads_char_words))
    words = encoder.word_projection(encoder.embeddings.words(batch))
    view = flat_view(batch)
    nodes = torch.cat([chars, words], 1)
    x = nodes.gather(1, view.source[:, :, None].expand(-1, -1, nodes.shape[2])) * view.mask[:, :, None]
    relation = literal_relation(encoder, view.head, view.tail)  # [B, N, N, D]
    for layer in encoder.layers:
        x = layer.attention_norm(x + literal_attention(layer, x, relation, view.mask))
        x = layer.ff_norm(x + layer.ff_out(torch.relu(layer.ff_in(x))))
    return x[:, : chars.shape[1]] if config.use_words else x


def literal_relation(encoder: FlatEncoder, head: Tensor, tail: Tensor) -> Tensor:
    """Eq. 4-10: float[B, N, N, D]."""
    ends = {"h": head, "t": tail}
    reach = int(tail.max())
    position = torch.arange(-reach, reach + 1, device=head.device)
    table = sinusoid(position, encoder.config.width, encoder.config.sinusoid)
    positions = [
        table[ends[name[0]][:, :, None] - ends[name[1]][:, None, :] + reach] for name in encoder.config.distances
    ]
    return torch.relu(encoder.fusion.weight(torch.cat(positions, -1)))


def literal_attention(layer: FlatLayer, x: Tensor, relation: Tensor, mask: Tensor) -> Tensor:
    """Eq. 11 and Eq. 1: float[B, N, D]."""
    attention = layer.attention
    n_heads, head_width = attention.config.n_heads, attention.config.head_width

    def by_head(y: Tensor) -> Tensor:
        return y.unflatten(-1, (n_heads, head_width))

    query, key, value = by_head(attention.query(x)), by_head(attention.key(x)), by_head(attention.value(x))
    relation_key = by_head(attention.relation_key(relation))  # [B, N, N, H, d]
    score = (
        torch.einsum("bihd,bjhd->bhij", query, key)
        + torch.einsum("bihd,bijhd->bhij", query, relation_key)
        + torch.einsum("hd,bjhd->bhj", attention.u, key)[:, :, None, :]
        + torch.einsum("hd,bijhd->bhij", attention.v, relation_key)
    ) / head_width**0.5
    weight = torch.softmax(score.masked_fill(~mask[:, None, None, :], float("-inf")), -1)
    return torch.einsum("bhij,bjhd->bihd", weight, value).flatten(2)
