"""FLAT equals vectors recorded from the original code (golden/*.npz; random weights, evaluation mode).

The arrays come from LeeSureman/Flat-Lattice-Transformer @ 200af2c, folder V0. `full_*` are whole models on three
real sentences, `attn_*` the attention alone.
"""

from dataclasses import replace
from pathlib import Path

import kernel_forms
import numpy as np
import pytest
import torch

from cige.data.batch import LatticeBatch
from cige.models.flat import RELEASED, FlatConfig, FlatEncoder, FlatLayer, RelativeSpanFusion, sinusoid
from cige.models.tagger import Tagger
from cige.nn.embeddings import InputSizes
from cige.nn.relative_spans import relative_spans
from cige.nn.span_attention import SpanPairs

GOLDEN = Path(__file__).parent / "golden"
DISTANCES = {"ff": ("hh", "ht", "th", "tt"), "ff_two": ("hh", "tt")}
NAMES = {"W_q": "query", "W_kE": "key", "W_v": "value"}


def golden(name: str) -> dict[str, torch.Tensor]:
    with np.load(GOLDEN / f"{name}.npz") as arrays:
        return {k: torch.from_numpy(v) if v.dtype.kind in "fi" else v for k, v in arrays.items()}


def set_linear(linear: torch.nn.Linear, z: dict, name: str) -> None:
    linear.weight.data.copy_(z[f"{name}.weight"])
    if linear.bias is not None:
        linear.bias.data.copy_(z[f"{name}.bias"])


def load_attention(layer: FlatLayer, z: dict, prefix: str) -> None:
    attention = layer.attention
    set_linear(attention.query, z, f"{prefix}W_q")
    set_linear(attention.value, z, f"{prefix}W_v")
    if isinstance(attention.key, torch.nn.Linear):
        set_linear(attention.key, z, f"{prefix}W_kE")
    attention.relation_key.weight.data.copy_(z[f"{prefix}W_kR.weight"])
    attention.u.data.copy_(z[f"{prefix}u"])
    attention.v.data.copy_(z[f"{prefix}v"])


@pytest.fixture(params=kernel_forms.FORMS, autouse=True)
def every_form(request, monkeypatch):
    kernel_forms.use(request.param, monkeypatch)


@pytest.mark.parametrize("name", ["attn_d16_h4", "attn_d160_h8"])
@pytest.mark.parametrize("fusion", ["ff", "ff_two"])
@pytest.mark.parametrize("switches", ["", "_scaled", "_with_kproj", "_with_kproj_scaled"])
def test_attention_equals_golden(name, fusion, switches):
    z = golden(name)
    out_key = f"{fusion}.out{switches}"
    if out_key not in z:
        pytest.skip(f"{name} was recorded without {out_key}")
    width, n_heads, max_len, _, n = (int(x) for x in z["cfg"])
    config = FlatConfig(
        **RELEASED | {"distances": DISTANCES[fusion]},
        n_heads=n_heads,
        head_width=width // n_heads,
        position_offset=max_len,
    )
    config = replace(config, scale_scores="scaled" in switches, key_projection="kproj" in switches)
    fuse, layer = RelativeSpanFusion(config), FlatLayer(config)
    set_linear(fuse.weight, z, f"{fusion}.W_r")
    load_attention(layer, z, f"{fusion}.")
    spans = relative_spans(z["pos_head"].long(), z["pos_tail"].long())
    relation = fuse(spans)
    expected_rows = z[f"{fusion}.R"]
    torch.testing.assert_close(relation[spans.index[: len(expected_rows)].long()], expected_rows, atol=1e-5, rtol=0)
    n_nodes = (z["seq_len"] + z["lex_num"]).long()
    out, probabilities = layer.attention(z["x"], SpanPairs(relation, spans, n_nodes), with_attention=True)
    real = torch.arange(n) < n_nodes[:, None]  # rows of padding hold nothing that a model reads
    torch.testing.assert_close(out[real], z[out_key][real], atol=1e-5, rtol=0)
    if not switches:
        by_batch = probabilities.transpose(0, 1).transpose(1, 2)  # [B, N, H, N]
        torch.testing.assert_close(by_batch[real], z[f"{fusion}.probs"].transpose(1, 2)[real], atol=1e-5, rtol=0)


def test_position_table_equals_golden():
    z = golden("attn_d160_h8")
    table = sinusoid(torch.arange(len(z["pos_table"])), 160, "concatenated")
    torch.testing.assert_close(table, z["pos_table"], atol=1e-5, rtol=0)


def whole_model(z: dict, fusion: str) -> tuple[Tagger, LatticeBatch]:
    """The recorded model and batch; every character, bigram and word gets a table row of its own."""
    n_batch, n, width = z["emb_lattice"].shape
    n_chars, n_words = z["seq_len"].long(), z["lex_num"].long()
    longest = z["emb_bigram"].shape[1]
    max_len = (len(z["pos_table"]) - 1) // 2
    n_tags = len(z["crf_trans"])
    settings = RELEASED | {"distances": DISTANCES[fusion], "position_offset": max_len}
    config = FlatConfig(**settings, n_heads=4, head_width=8, ff_width=96)
    rows = 3 + n_batch * n
    widths = (width, z["emb_bigram"].shape[2], width)
    encoder = FlatEncoder(config=config, sizes=InputSizes((rows,) * 3, (rows,) * 3, widths))
    embeddings = encoder.embeddings
    padded_bigrams = torch.zeros(n_batch, n, z["emb_bigram"].shape[2])
    padded_bigrams[:, :longest] = z["emb_bigram"]
    for table, vectors in (
        (embeddings.char, z["emb_lattice"]), (embeddings.bigram, padded_bigrams), (embeddings.word, z["emb_lattice"]),
    ):  # fmt: skip
        table.load_vectors(torch.cat([torch.zeros(3, vectors.shape[2]), vectors.reshape(-1, vectors.shape[2])]))
    set_linear(encoder.char_projection, z, "W_char")
    set_linear(encoder.word_projection, z, "W_lex")
    set_linear(encoder.fusion.weight, z, "W_r")
    layer = encoder.layers[0]
    load_attention(layer, z, "")
    set_linear(layer.ff_in, z, "W_ff1")
    set_linear(layer.ff_out, z, "W_ff2")
    layer.attention_norm.weight.data.copy_(z["LN_shared.weight"])
    layer.attention_norm.bias.data.copy_(z["LN_shared.bias"])
    tags = [f"T{k}" for k in range(n_tags)]
    tagger = Tagger(encoder=encoder, tags=tags, output_dropout_prob=0.3, constrained=False, boundary_scores=False)
    set_linear(tagger.output, z, "W_out")
    tagger.crf.transitions.data.copy_(z["crf_trans"])

    row = 3 + torch.arange(n_batch * n).view(n_batch, n)
    node = torch.arange(n)
    word_node = (n_chars[:, None] + node).clamp(max=n - 1)
    inside = node < n_words[:, None]
    batch = LatticeBatch(
        chars=(row * (node < n_chars[:, None]))[:, :longest],
        bigrams=(row * (node < n_chars[:, None]))[:, :longest],
        n_chars=n_chars,
        words=row.gather(1, word_node) * inside,
        word_starts=z["pos_head"].long().gather(1, word_node) * inside,
        word_ends=(z["pos_tail"].long().gather(1, word_node) + 1) * inside,
        word_counts=torch.zeros_like(word_node),
        word_groups=torch.zeros_like(word_node),
        n_words=n_words,
        texts=("",) * n_batch,
        tags=z["target"].long(),
    )
    return tagger, batch


@pytest.mark.parametrize(("name", "fusion"), [("full_V0_ff_d32", "ff"), ("full_V0_fftwo_d32", "ff_two")])
def test_whole_model_equals_golden(name, fusion):
    z = golden(name)
    tagger, batch = whole_model(z, fusion)
    tagger.eval()
    real = batch.char_mask
    with torch.no_grad():
        encoded = tagger.encoder(batch)
        torch.testing.assert_close(encoded[real], z["post2_out"][:, : real.shape[1]][real], atol=1e-5, rtol=0)
        torch.testing.assert_close(tagger(batch).emissions[real], z["emissions"][real], atol=1e-5, rtol=1e-5)
    assert tagger.decode(batch) == [row[:n].tolist() for row, n in zip(z["pred"], batch.n_chars, strict=True)]
    loss = tagger.loss(batch)
    torch.testing.assert_close(loss, z["loss"].view(()), atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize(("name", "fusion"), [("full_V0_ff_d32", "ff"), ("full_V0_fftwo_d32", "ff_two")])
def test_gradients_equal_golden(name, fusion):
    z = golden(name)
    tagger, batch = whole_model(z, fusion)
    tagger.eval()  # every dropout 0, as recorded
    tagger.loss(batch).backward()
    layer = tagger.encoder.layers[0]
    expected = {
        "W_r.weight": tagger.encoder.fusion.weight.weight,
        "W_q.weight": layer.attention.query.weight,
        "W_v.weight": layer.attention.value.weight,
        "W_kR.weight": layer.attention.relation_key.weight,
        "u": layer.attention.u,
        "v": layer.attention.v,
        "W_ff1.weight": layer.ff_in.weight,
        "LN_shared.weight": layer.attention_norm.weight,
        "W_char.weight": tagger.encoder.char_projection.weight,
        "W_lex.weight": tagger.encoder.word_projection.weight,
        "W_out.weight": tagger.output.weight,
        "crf_trans": tagger.crf.transitions,
    }
    for key, parameter in expected.items():
        torch.testing.assert_close(
            parameter.grad, z[f"grad.{key}"], atol=2e-4, rtol=1e-4, msg=lambda m, k=key: f"{k}: {m}"
        )
