"""A model that reads components of characters: unseen characters, folders, models derived from it, its settings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tiny
import torch
from tiny import emissions_of_each

from cige.data.batch import collate
from cige.data.components import NO_SEQUENCE
from cige.data.vocabulary import UNK, char_codes
from cige.errors import ModelError
from cige.models.build import build_network
from cige.models.config import ComponentsConfig, config_from_json
from cige.models.flat_config import FlatConfig
from cige.models.mean import mean_model
from cige.models.model import LatticeModel
from cige.models.trim import rename_labels, trim
from cige.text.normalize import normalize

UNSEEN = tiny.UNSEEN  # no vector, but components of seen characters
UNKNOWN = "龘罕爨齉"  # neither
TEXTS = ["李明在北京市长江大桥。", "重庆人和药店", "好", UNSEEN]


def made() -> LatticeModel:
    return tiny.model(config=replace(tiny.CONFIG, components=tiny.COMPONENTS))


def test_an_unseen_character_with_seen_components_is_not_an_unknown_one():
    model = made()
    vocabulary = model.vocabulary
    for char in UNSEEN + UNKNOWN:
        assert vocabulary.chars.look_up(char_codes(char)).tolist() == [UNK]
        (sequence,) = vocabulary.components.look_up(char_codes(char)).tolist()
        assert (sequence == NO_SEQUENCE) == (char in UNKNOWN)
    one, other, unknown, too = (emissions_of_each(model, [f"请{char}说话"])[0] for char in UNSEEN[:2] + UNKNOWN[:2])
    torch.testing.assert_close(unknown, too)  # nothing tells two unknown characters apart
    assert not torch.allclose(one, other, atol=1e-4) and not torch.allclose(one, unknown, atol=1e-4)


def test_only_components_tell_unseen_characters_apart():
    model = made()
    with torch.no_grad():
        model.tagger.encoder.components.output.weight.zero_()
    texts = [f"请{char}说话" for char in UNSEEN + UNKNOWN]
    first, *others = emissions_of_each(model, texts)
    for other in others:
        torch.testing.assert_close(other, first)


def test_a_folder_for_prediction_keeps_them(tmp_path):
    model = made()
    for dtype in ("float16", "int8"):
        model.save(tmp_path / dtype, table_dtype=dtype)
        again = LatticeModel.load(tmp_path / dtype)
        assert again.vocabulary.components.same_as(model.vocabulary.components)
        (row,), (same,) = emissions_of_each(model, [UNSEEN]), emissions_of_each(again, [UNSEEN])
        torch.testing.assert_close(row, same, atol=0.05, rtol=0)


def test_a_trimmed_and_a_renamed_model_keep_them():
    model = made()
    small = trim(model, n_words=10**6, n_bigrams=10**6)
    for row, same in zip(emissions_of_each(model, TEXTS), emissions_of_each(small, TEXTS), strict=True):
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


@pytest.mark.parametrize("reads", [True, False])
def test_what_training_says_of_a_component_holds_for_characters_that_it_never_saw(reads):
    """The type of a name of one character follows from its component; no character has a vector."""
    config = replace(tiny.CONFIG, embed_dropout_prob=0.0, components=tiny.COMPONENTS if reads else None)
    model = tiny.model(config=config)
    chars = [chr(code) for code in range(0x9000, 0x9E00, 3) if code % 4 == 0]  # those with one component
    chars = [char for char in chars if normalize(char) == char]
    of_char = {char: "LOC" if int(part) < 12 else "PER" for char, (part,) in tiny.components("".join(chars)).items()}
    chars = list(np.random.default_rng(0).permutation(sorted(of_char)))
    n_seen = 140
    tags = model.tagger.tags
    lattices = model.lattices([f"请{char}说话" for char in chars])
    gold = [np.array([tags.index(tag) for tag in ("O", f"S-{of_char[char]}", "O", "O")]) for char in chars]
    batch = collate([model.vocabulary.encode(x) for x in lattices[:n_seen]], gold[:n_seen])
    optimizer = torch.optim.Adam(model.tagger.parameters(), lr=0.01)
    model.tagger.train()
    for _ in range(60):
        optimizer.zero_grad()
        model.tagger.loss(batch).backward()
        optimizer.step()
    model.tagger.eval()
    paths = model.tagger.decode(model.batch(lattices[n_seen:]))
    share = np.mean([path == row.tolist() for path, row in zip(paths, gold[n_seen:], strict=True)])
    assert len(chars) - n_seen > 80
    assert share > 0.95 if reads else share < 0.7
