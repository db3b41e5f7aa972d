"""Relations of pairs of characters in a band: entities as paths that may be nested or discontinuous (W2NER).

Li, Fei, Liu, Wu, Zhang, Teng, Ji, Li, "Unified Named Entity Recognition as Word-Word Relation Classification", AAAI
2022. Each pair (i, j) of characters has one class: none, "j is the next character of an entity after i" (above the
diagonal), or "i is the last and j the first character of an entity of type k" (on and below the diagonal). The head is
the paper's from §3.2 on, over the features h of any encoder:

    V_ij = gamma(h_j) * normalised(h_i) + beta(h_j)                            conditional layer norm
    C_ij = [distance; region; V_ij] -> 1 x 1 convolution, GELU -> three 3 x 3 convolutions in a row with dilations 1,
           2 and 3, each per channel and followed by GELU; their outputs are concatenated
    s_ij = [x_i; 1] U [y_j; 1] + MLP(C_ij)                            co-predictor; x, y = GELU of linear layers

gamma and beta have no biases beside the 1 of gamma (the released code trains 2 D of them): the 1 x 1 convolution, which
multiplies and adds for each channel, can express the same.

Only the band |j - i| < M is computed: cell [i, n] is the pair (i, i + n - M + 1). A step in j at a fixed i is a step in
n, and a step in i at a fixed j is a step in i and one back in n, so a 3 x 3 kernel of pairs is a 3 x 5 kernel of cells
with nine weights. Cells outside the band or the sentence are 0 before each convolution, so that scores do not depend on
the padding of a batch. If M is at least T, the band is the paper's grid.

A region is below the diagonal, above it, or (ours) the pair of the first and last character of a user's word.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cige.data.gold_spans import N_RELATIONS
from cige.nn.dropout import Dropout

DILATIONS = (1, 2, 3)
EPSILON = 1e-12
N_DISTANCES = 19  # 9 bins of each sign, and 0
BELOW, ABOVE, USER_WORD = range(3)


class WordPairGrid(nn.Module):
    """Class scores of pairs of characters, float[B, T, 2 M - 1, K + 2].

    Args:
        pair_width, biaffine_width: width of the convolutions, and of x and y of the co-predictor.
        embed_width: width of the vectors of distances and of regions.
        dropout_prob, output_dropout_prob: dropout on features and cells, and in the co-predictor; those of the paper.
    """

    def __init__(
        self,
        *,
        in_width: int,
        n_types: int,
        pair_width: int = 96,
        biaffine_width: int = 512,
        embed_width: int = 20,
        dropout_prob: float = 0.5,
        output_dropout_prob: float = 0.33,
    ):
        super().__init__()
        n_classes = n_types + N_RELATIONS
        self.scale = nn.Linear(in_width, in_width, bias=False)  # gamma(h) = 1 + scale(h)
        self.shift = nn.Linear(in_width, in_width, bias=False)  # beta
        self.distances = nn.Embedding(N_DISTANCES, embed_width)
        self.regions = nn.Embedding(3, embed_width)
        self.pairs = nn.Linear(in_width + 2 * embed_width, pair_width)
        self.convolutions = nn.ModuleList(
            nn.Conv2d(pair_width, pair_width, 3, groups=pair_width, dilation=d) for d in DILATIONS
        )
        wide = pair_width * len(DILATIONS)
        self.first, self.second = nn.Linear(in_width, biaffine_width), nn.Linear(in_width, biaffine_width)
        self.biaffine = nn.Parameter(torch.empty(n_classes, biaffine_width + 1, biaffine_width + 1))
        self.hidden, self.output = nn.Linear(wide, wide), nn.Linear(wide, n_classes)
        self.dropout, self.output_dropout = Dropout(dropout_prob), Dropout(output_dropout_prob)
        self.channel_dropout = nn.Dropout2d(dropout_prob)
        for layer in (self.scale, self.shift):
            nn.init.zeros_(layer.weight)
        nn.init.xavier_normal_(self.biaffine)

    def forward(self, features: Tensor, mask: Tensor, user_words: Tensor) -> Tensor:
        """float[B, T, 2 M - 1, K + 2], from features float[B, T, D]; cells outside the mask have any value.

        Args:
            mask: bool[B, T, 2 M - 1], the cells of pairs within a sentence.
            user_words: bool[B, T, 2 M - 1], the cells of the first and last character of a user's word.
        """
        n_cells = mask.shape[2]
        cells = self._cells(features, user_words)  # [B, T, N, C]
        grid = (cells * mask[..., None]).permute(0, 3, 1, 2)
        grid = F.gelu(F.linear(self.channel_dropout(grid).permute(0, 2, 3, 1), self.pairs.weight, self.pairs.bias))
        grid, outputs = grid.permute(0, 3, 1, 2), []
        for convolution in self.convolutions:
            assert isinstance(convolution, nn.Conv2d)
            grid = F.gelu(band_convolution(grid * mask[:, None], convolution))
            outputs.append(grid)
        convolved = torch.cat(outputs, 1).permute(0, 2, 3, 1)
        hidden = self.output_dropout(F.gelu(self.hidden(self.output_dropout(convolved))))
        first, second = (
            self.output_dropout(F.gelu(layer(self.output_dropout(features)))) for layer in (self.first, self.second)
        )
        return self.output(hidden) + self._biaffine_scores(first, second, n_cells)

    def _cells(self, features: Tensor, user_words: Tensor) -> Tensor:
        """float[B, T, N, C]: the vectors of distance and region, and V_ij."""
        n_cells = user_words.shape[2]
        centred = features - features.mean(-1, keepdim=True)
        normalised = centred / (centred.square().mean(-1, keepdim=True) + EPSILON).sqrt()
        scale, shift = (around(layer(features), n_cells) for layer in (self.scale, self.shift))
        conditioned = (1 + scale) * normalised[:, :, None] + shift
        offsets = torch.arange(n_cells, device=features.device) - n_cells // 2  # j - i
        distances = self.distances(distance_bins(-offsets)).expand(*user_words.shape, -1)
        region = torch.where(offsets > 0, ABOVE, BELOW).expand(user_words.shape)
        regions = self.regions(region.masked_fill(user_words, USER_WORD))
        return torch.cat([distances, regions, conditioned], -1)

    def _biaffine_scores(self, first: Tensor, second: Tensor, n_cells: int) -> Tensor:
        """float[B, T, N, L]: [x_i; 1] U_l [y_j; 1] for each class l."""
        one = first.new_ones(*first.shape[:2], 1)
        turned = torch.einsum("btx,lxy->btly", torch.cat([first, one], -1), self.biaffine)
        return torch.einsum("btly,btny->btnl", turned, around(torch.cat([second, one], -1), n_cells))


def around(values: Tensor, n_cells: int) -> Tensor:
    """float[B, T, N, D]: values[j] of float[B, T, D] for the cell of the pair (i, j), or 0 outside T."""
    reach = n_cells // 2
    return F.pad(values, (0, 0, reach, reach)).unfold(1, n_cells, 1).transpose(2, 3)


def band_convolution(cells: Tensor, layer: nn.Conv2d) -> Tensor:
    """The 3 x 3 convolution per channel of a grid of pairs, float[B, C, T, T], on its band, float[B, C, T, N]."""
    kernel = layer.weight.new_zeros(*layer.weight.shape[:2], 3, 5)
    for row in range(3):  # the weight of (i + a, j + b) belongs to the cell (i + a, n + b - a)
        kernel[:, :, row, 2 - row : 5 - row] = layer.weight[:, :, row]
    dilation = layer.dilation[0]
    return F.conv2d(cells, kernel, layer.bias, padding=(dilation, 2 * dilation), dilation=dilation, groups=layer.groups)


def distance_bins(distances: Tensor) -> Tensor:
    """int64: the bins of distances i - j: 1, 2-3, 4-7, ..., 256 and more are 1 to 9, negative ones 10 to 18, and 0 is
    0."""
    sizes = 1 + torch.floor(torch.log2(distances.abs().clamp(1, 256).double())).long()
    return torch.where(distances > 0, sizes, torch.where(distances < 0, sizes + 9, 0))


def pair_mask(n_chars: Tensor, length: int, band: int) -> Tensor:
    """bool[B, T, 2 M - 1]: the cells of pairs of characters within their sentences; `length` is T, and `band` M."""
    first = torch.arange(length, device=n_chars.device)[:, None]
    second = first + torch.arange(1 - band, band, device=n_chars.device)
    return (second >= 0) & (second < n_chars[:, None, None]) & (first < n_chars[:, None, None])


def user_word_cells(starts: Tensor, ends: Tensor, is_user: Tensor, length: int, band: int) -> Tensor:
    """bool[B, T, 2 M - 1]: the cells of both orders of the first and last character of words of users.

    Args:
        starts, ends: int64[B, W], half-open.
        is_user: bool[B, W].
    """
    first, last = starts, ends - 1
    fits = is_user & (last - first < band)
    cells = torch.zeros(len(starts), length, 2 * band - 1, dtype=torch.bool, device=starts.device)
    row = torch.arange(len(starts), device=starts.device)[:, None].expand_as(starts)[fits]
    first, last = first[fits], last[fits]
    cells[row, first, last - first + band - 1] = True
    cells[row, last, first - last + band - 1] = True
    return cells
