"""BERT-CRF: the hidden states that transformers gives, the layers on top of them, and the BERT as a folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import tiny
import torch
import transformers
from tiny_bert import write_bert

from cige.data.batch import LatticeBatch
from cige.errors import RecipeError
from cige.models.bert_crf import BertCrfConfig, BertCrfEncoder
from cige.models.model import LatticeModel
from cige.nn.bert import BertFeatures
from cige.nn.embeddings import InputSizes
from cige.training.recipe import recipe_from_dict

TEXTS = ["李明在北京", "", "今天天气很好"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bert(tmp_path_factory.mktemp("bert") / "tiny")


def made(bert: Path, **settings: object) -> LatticeModel:
    config = replace(BertCrfConfig(bert=str(bert)), **settings)
    return tiny.model(config=config, architecture="bert_crf", features=BertFeatures.load(bert, tuned=config.bert_tuned))


def literal_emissions(model: LatticeModel, bert: Path, text: str) -> torch.Tensor:
    """float[T, L] by way of transformers alone."""
    network = transformers.AutoModel.from_pretrained(bert).eval()
    ids = transformers.AutoTokenizer.from_pretrained(bert)(text, return_tensors="pt")["input_ids"]
    assert ids.shape[1] == len(text) + 2
    rows = []
    for x in network(ids).last_hidden_state[0, 1:-1]:
        for linear in [part for part in model.tagger.encoder.mlp if isinstance(part, torch.nn.Linear)]:
            x = linear.weight @ x + linear.bias
            x = x * 0.5 * (1 + torch.erf(x / 2**0.5))
        rows.append(model.tagger.output.weight @ x + model.tagger.output.bias)
    return torch.stack(rows)


@pytest.mark.parametrize("widths", [(), (12,), (12, 6)], ids=str)
@torch.no_grad()
def test_equals_its_definition(bert, widths):
    model = made(bert, hidden_widths=widths)
    emissions = model.tagger(model.encode(TEXTS)[0]).emissions
    for row, text in zip(emissions, TEXTS, strict=True):
        if text:
            torch.testing.assert_close(row[: len(text)], literal_emissions(model, bert, text), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_words_change_nothing(bert):
    model = made(bert)
    before = model.tagger(model.encode(TEXTS)[0]).emissions
    model.lexicon.add("在北京", "天天")
    batch, lattices = model.encode(TEXTS)
    assert any(lattice.is_user.any() for lattice in lattices)
    torch.testing.assert_close(model.tagger(batch).emissions, before)
    _, shares = model.tagger.encoder.read_words(batch)
    assert shares.shape == (*batch.chars.shape, batch.words.shape[1]) and not shares.any()


def test_it_has_no_tables_of_its_own(bert):
    own = {name for name, _ in made(bert).tagger.named_parameters() if "features" not in name}
    assert own == {"output.weight", "output.bias", "crf.transitions", "crf.start", "crf.end"}


@pytest.mark.parametrize("tuned", [True, False])
def test_training_changes_the_bert_only_if_it_is_tuned(bert, tuned):
    model = made(bert, bert_tuned=tuned)
    model.tagger.train()
    batch: LatticeBatch = model.encode(TEXTS)[0]
    model.tagger(batch).emissions.square().mean().backward()
    gradients = [w.grad for w in model.tagger.encoder.features.parameters()]
    assert all((g is not None) == tuned for g in gradients) and model.tagger.output.weight.grad is not None


@torch.no_grad()
def test_the_saved_folder_holds_the_bert_as_it_was_trained(bert, tmp_path):
    model = made(bert)
    for weight in model.tagger.encoder.features.parameters():
        weight.mul_(1.1)
    before = model.tagger(model.encode(TEXTS)[0]).emissions
    model.save(tmp_path / "model")
    again = LatticeModel.load(tmp_path / "model")
    torch.testing.assert_close(again.tagger(again.encode(TEXTS)[0]).emissions, before, atol=1e-6, rtol=1e-5)
    assert literal_emissions(again, tmp_path / "model" / "bert", TEXTS[0]).allclose(before[0, :5], atol=1e-5)


def test_a_recipe_without_a_bert_is_refused():
    values = {"data": {"dataset": "weibo"}, "architecture": "bert_crf", "name": "x"}
    with pytest.raises(RecipeError, match=r"model\.bert names no BERT"):
        recipe_from_dict(values)
    wrong = BertCrfConfig(bert="folder", use_bigrams=True, hidden_widths=(3, 0)).problems()
    assert [p.split(" is ")[0] for p in wrong] == ["model.use_bigrams", "model.hidden_widths"]
    sizes = InputSizes(n_rows=(3, 3, 3), n_tuned=(3, 3, 3), widths=(4, 4, 4))
    with pytest.raises(ValueError, match="names no BERT"):
        BertCrfEncoder(config=BertCrfConfig(), sizes=sizes)
