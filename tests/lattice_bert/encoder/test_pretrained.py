"""A pre-trained Lattice-BERT: vectors of characters and words in one call, saved, loaded, and what does not fit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import tiny
import tiny_lattice_bert
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tiny_lattice_bert import N_POSITIONS, pretrained

from cige.errors import ModelError
from cige.lattice_bert.encoder.network import LatticeBert
from cige.lattice_bert.encoder.pretrained import PretrainedLatticeBert

TEXTS = ["李明在北京。", "", "南京市 长江大桥", "2020年abc\t😀"]


@pytest.fixture(scope="module")
def model() -> PretrainedLatticeBert:
    return pretrained()


def test_characters_and_words_in_one_call(model):
    found = model.features(TEXTS)
    for text, features in zip(TEXTS, found, strict=True):
        assert features.lattice.text == text
        assert features.char_vectors.shape == (len(text), 16)
        words = [text[start:end].replace(" ", "") for start, end in features.word_spans.tolist()]
        assert features.word_vectors.shape == (len(words), 16) and set(words) <= set(tiny.WORDS)
    assert [TEXTS[2][s:e] for s, e in found[2].word_spans.tolist()] == ["南京", "南京市", "长江", "大桥", "长江大桥"]
    pieces = found[3].char_vectors
    assert (pieces[0] == pieces[3]).all() and (pieces[0] != pieces[4]).any()  # one piece: 2020
    assert not pieces[8].any() and pieces[9].any()  # a tab has no piece, an unknown character has [UNK]


def test_vectors_are_the_networks(model):
    with torch.no_grad():
        from cige.lattice_bert.encoder.token_batch import collate_tokens

        inputs = model.tokenizer.encode("南京市长江大桥")
        hidden = model.bert(collate_tokens([inputs])).hidden[0]
    found = model.features(["南京市长江大桥"])[0]
    torch.testing.assert_close(found.token_vectors, hidden[1:-1])
    torch.testing.assert_close(found.char_vectors, hidden[inputs.chain(0)])


def test_neighbours_change_nothing(model):
    together = model.features(TEXTS)
    for text, features in zip(TEXTS, together, strict=True):
        torch.testing.assert_close(features.char_vectors, model.features([text])[0].char_vectors, rtol=1e-4, atol=1e-5)


def test_words_change_the_vectors_of_characters(model):
    other = model.features(["李明在北京。"])[0].char_vectors
    plain = pretrained(words=[])
    assert plain.features(["李明在北京。"])[0].word_vectors.shape == (0, 16)
    assert other.shape == plain.features(["李明在北京。"])[0].char_vectors.shape


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text(max_size=3 * N_POSITIONS), max_size=4))
def test_any_text(texts):
    for text, found in zip(texts, pretrained().features(texts), strict=True):
        assert found.char_vectors.shape == (len(text), 16) and torch.isfinite(found.char_vectors).all()


def test_a_text_longer_than_the_positions_is_read_in_windows(model):
    text = "李明在北京市长江大桥。" * 9
    found = model.features([text])[0]
    assert torch.isfinite(found.token_vectors).all() and found.char_vectors.abs().sum(1).all()
    start = model.features([text[: N_POSITIONS - 2]])[0]
    torch.testing.assert_close(found.char_vectors[:5], start.char_vectors[:5], rtol=1e-4, atol=1e-5)


def test_one_text_is_refused(model):
    with pytest.raises(ModelError, match="expected a list of texts"):
        model.features("李明")


def test_features_leave_the_mode_of_training_as_it_was(model):
    model.network.train()
    first, second = (model.features(["李明在北京"])[0].char_vectors for _ in range(2))
    assert torch.equal(first, second) and model.network.training and model.bert.training
    model.network.eval()


# saved and loaded


@pytest.mark.parametrize("heads", [True, False])
def test_saved_and_loaded_is_the_same(tmp_path, heads):
    made = pretrained(heads=heads)
    made.save(tmp_path / "model")
    again = PretrainedLatticeBert.from_pretrained(tmp_path / "model")
    assert again.config == made.config and again.facts == {"n_steps": 7}
    assert again.vocabulary.words == made.vocabulary.words and isinstance(again.network, LatticeBert) != heads
    for name, weight in made.network.state_dict().items():
        assert torch.equal(again.network.state_dict()[name], weight), name
    for a, b in zip(made.features(TEXTS), again.features(TEXTS), strict=True):
        torch.testing.assert_close(a.token_vectors, b.token_vectors)  # sums may run in another order
    assert not again.network.training and all(p.requires_grad for p in again.network.parameters())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_the_size(tmp_path, dtype):
    made = pretrained(words=[])
    made.save(tmp_path / "whole")
    made.save(tmp_path / "half", dtype=dtype)
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("whole", "half")]
    assert sizes[1] < 0.65 * sizes[0]
    again = PretrainedLatticeBert.from_pretrained(tmp_path / "half")
    assert {p.dtype for p in again.network.parameters()} == {torch.float32}
    a, b = (m.features(["李明在北京"])[0].char_vectors for m in (made, again))
    torch.testing.assert_close(a, b, rtol=0.05, atol=0.05)


def test_loading_needs_neither_transformers_nor_accelerate_nor_a_compiler(tmp_path, model):
    model.save(tmp_path / "model")
    code = f"""
import sys
sys.modules["transformers"] = sys.modules["accelerate"] = None
from cige.lattice_bert.encoder.pretrained import PretrainedLatticeBert
print(len(PretrainedLatticeBert.from_pretrained({str(tmp_path / "model")!r}).features(["北京"])[0].char_vectors))
print("torch._dynamo" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "False"]


def test_saving_replaces_models_and_nothing_else(tmp_path, model):
    model.save(tmp_path / "model")
    model.save(tmp_path / "model")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ModelError, match="other"):
        model.save(tmp_path / "other")
    with pytest.raises(ModelError, match="dtype 'int4'"):
        model.save(tmp_path / "model", dtype="int4")


def test_network_and_vocabulary_must_fit(model):
    with pytest.raises(ModelError, match="do not belong together"):
        PretrainedLatticeBert(network=model.network, vocabulary=tiny_lattice_bert.vocabulary(words=["北京"]))


def damage_config(folder: Path, **changes) -> None:
    """Change the settings, and the manifest's word on the file, as somebody who mixes two models would."""
    from cige.folders.manifest import sha256

    about = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    about["config"] |= changes
    (folder / "config.json").write_text(json.dumps(about), encoding="utf-8")
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for name in ("config.json", "model.safetensors"):
        path = folder / name
        manifest["files"][name] = {"bytes": path.stat().st_size, "sha256": sha256(path)}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def test_a_checkpoint_of_another_size(tmp_path, model):
    model.save(tmp_path / "model")
    damage_config(tmp_path / "model", width=32)
    with pytest.raises(ModelError, match=r"do not fit each other.*size mismatch"):
        PretrainedLatticeBert.from_pretrained(tmp_path / "model")


def test_weights_that_are_missing(tmp_path, model):
    model.save(tmp_path / "model")
    path = tmp_path / "model/model.safetensors"
    save_file({k: v for k, v in load_file(path).items() if "pooler" not in k}, path)
    damage_config(tmp_path / "model")
    with pytest.raises(ModelError, match=r"do not fit each other.*pooler"):
        PretrainedLatticeBert.from_pretrained(tmp_path / "model")


def test_a_vocabulary_of_another_model(tmp_path, model):
    from cige.folders.manifest import read_manifest, write_manifest
    from cige.lattice_bert.encoder.pretrained import FORMAT_VERSION
    from cige.lattice_bert.kinds import PRETRAINED

    model.save(tmp_path / "model")
    words = [*tiny.WORDS[:-1], "巴塞"]  # as many, so that no size tells
    tiny_lattice_bert.vocabulary(words=words).save(tmp_path / "model/vocabulary")
    facts = {"kind": PRETRAINED, "version": FORMAT_VERSION}
    (tmp_path / "model/manifest.json").unlink()
    write_manifest(tmp_path / "model", **facts)
    assert read_manifest(tmp_path / "model", kind=PRETRAINED, version=FORMAT_VERSION, error=ModelError)
    with pytest.raises(ModelError, match=r"another vocabulary than the model's"):
        PretrainedLatticeBert.from_pretrained(tmp_path / "model")


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "vocabulary/words.txt"])
def test_a_damaged_folder_is_named(tmp_path, model, name):
    model.save(tmp_path / "model")
    path = tmp_path / "model" / name
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ModelError, match=name):
        PretrainedLatticeBert.from_pretrained(tmp_path / "model")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n_layers": 10**9}, "n_layers is 1000000000, and there are weights of fewer"),
        ({"position_scale": "triple"}, "position_scale is 'triple'"),
    ],
)
def test_settings_of_another_network_are_refused_before_it_is_built(tmp_path, model, changes, said):
    model.save(tmp_path / "model")
    damage_config(tmp_path / "model", **changes)
    with pytest.raises(ModelError, match=said):
        PretrainedLatticeBert.from_pretrained(tmp_path / "model")


def test_no_such_model(tmp_path):
    with pytest.raises(ModelError, match="no such folder"):
        PretrainedLatticeBert.from_pretrained(tmp_path / "none")
