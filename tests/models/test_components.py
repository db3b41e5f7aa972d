"""A model that reads components of characters: unseen characters, folders, models derived from it, its settings."""

from __future__ import annotations

from dataclasses import replace

import pytest
import tiny
import torch

from cige.data.components import NO_SEQUENCE
from cige.data.vocabulary import UNK, char_codes
from cige.errors import ModelError
from cige.models.build import build_network
from cige.models.components_config import ComponentsConfig
from cige.models.config import config_from_json
from cige.models.flat_config import FlatConfig
from cige.models.mean import mean_model
from cige.models.model import LatticeModel
from cige.models.trim import rename_labels, trim

UNSEEN = tiny.UNSEEN  # no vector, but components of seen characters
UNKNOWN = "龘罕爨齉"  # neither
TEXTS = ["李明在北京市长江大桥。", "重庆人和药店", "好", UNSEEN]


def made() -> LatticeModel:
    return tiny.model(config=replace(tiny.CONFIG, components=tiny.COMPONENTS))


def emissions(model: LatticeModel, texts: list[str]) -> list[torch.Tensor]:
    """float[T, L] of each text, read as one batch."""
    with torch.no_grad():
        out = model.tagger(model.encode(texts)[0])
    return [row[: len(text)] for row, text in zip(out.emissions, texts, strict=True)]


def test_an_unseen_character_with_seen_components_is_not_an_unknown_one():
    model = made()
    vocabulary = model.vocabulary
    for char in UNSEEN + UNKNOWN:
        assert vocabulary.chars.look_up(char_codes(char)).tolist() == [UNK]
        (sequence,) = vocabulary.components.look_up(char_codes(char)).tolist()
        assert (sequence == NO_SEQUENCE) == (char in UNKNOWN)
    one, other, unknown, too = (emissions(model, [f"请{char}说话"])[0] for char in UNSEEN[:2] + UNKNOWN[:2])
    torch.testing.assert_close(unknown, too)  # nothing tells two unknown characters apart
    assert not torch.allclose(one, other, atol=1e-4) and not torch.allclose(one, unknown, atol=1e-4)


def test_only_components_tell_unseen_characters_apart():
    model = made()
    with torch.no_grad():
        model.tagger.encoder.components.output.weight.zero_()
    texts = [f"请{char}说话" for char in UNSEEN + UNKNOWN]
    first, *others = emissions(model, texts)
    for other in others:
        torch.testing.assert_close(other, first)


def test_a_folder_for_prediction_keeps_them(tmp_path):
    model = made()
    for dtype in ("float16", "int8"):
        model.save(tmp_path / dtype, table_dtype=dtype)
        again = LatticeModel.load(tmp_path / dtype)
        assert again.vocabulary.components.same_as(model.vocabulary.components)
        (row,), (same,) = emissions(model, [UNSEEN]), emissions(again, [UNSEEN])
        torch.testing.assert_close(row, same, atol=0.05, rtol=0)


def test_a_trimmed_and_a_renamed_model_keep_them():
    model = made()
    small = trim(model, n_words=10**6, n_bigrams=10**6)
    for row, same in zip(emissions(model, TEXTS), emissions(small, TEXTS), strict=True):
        torch.testing.assert_close(row, same, atol=1e-3, rtol=0)  # tables are in 16 bits
    assert rename_labels(model, {"LOC": "PLACE"}).vocabulary.components is model.vocabulary.components


def test_the_mean_of_models_with_equal_tables():
    first, second = (made() for _ in range(2))
    weight = "encoder.components.output.bias"
    with torch.no_grad():
        second.tagger.encoder.components.output.bias += 1
    mean = mean_model([first, second])
    assert mean.vocabulary.components is first.vocabulary.components
    torch.testing.assert_close(mean.tagger.state_dict()[weight], first.tagger.state_dict()[weight] + 0.5)
    table = first.vocabulary.components
    sequences = table.sequences.copy()
    sequences[0] = NO_SEQUENCE
    other = replace(first.vocabulary, components=replace(table, sequences=sequences))
    with pytest.raises(ModelError, match="components of characters"):
        mean_model([first, replace(second, vocabulary=other)])


def test_settings_and_table_belong_together():
    model = made()
    for config, vocabulary in (
        (replace(model.config, components=None), model.vocabulary),
        (model.config, replace(model.vocabulary, components=None)),
    ):
        with pytest.raises(ValueError, match="table of components"):
            build_network("flat", config, vocabulary, model.tagger.tags, model.widths)


def test_settings_of_a_manifest():
    config = config_from_json(FlatConfig, {"distances": ["hh"], "components": {"table": "x.tsv", "width": 9}})
    assert config == FlatConfig(distances=("hh",), components=ComponentsConfig(table="x.tsv", width=9))
    with pytest.raises(TypeError):
        config_from_json(FlatConfig, {"components": {"table": "x.tsv", "wide": 9}})
