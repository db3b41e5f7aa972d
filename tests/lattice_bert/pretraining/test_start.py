"""A run that goes on from a pre-trained model: which weights it begins with, and what does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny
import tiny_pretraining
import torch

from cige.errors import RecipeError
from cige.lattice_bert.encoder.heads import LatticeBertForPreTraining
from cige.lattice_bert.encoder.joint_vocabulary import JointVocabulary
from cige.lattice_bert.encoder.network import LatticeBertConfig
from cige.lattice_bert.encoder.pretrained import PretrainedLatticeBert, add_adapter
from cige.lattice_bert.encoder.word_adapter import WordAdapterConfig
from cige.lattice_bert.pretraining.pretrain import PretrainResult, pretrain
from cige.lattice_bert.pretraining.start import Origins, initialise_from

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
OLD = JointVocabulary.build([*SPECIAL, *"研究生活很"], ["研究", "生活"])
NEW = JointVocabulary.build([*SPECIAL, *"很生活研究实习"], ["研究生", "生活", "实习", "实习生"])


def network(vocabulary: JointVocabulary, *, seed: int, n_classes: int = 2, **settings) -> LatticeBertForPreTraining:
    torch.manual_seed(seed)
    sizes = {"n_layers": 2, "n_heads": 2, "width": 8, "embedding_width": 4, "position_width": 2, "max_positions": 32}
    config = LatticeBertConfig(n_tokens=len(vocabulary), **sizes | settings)
    model = LatticeBertForPreTraining(config, n_classes)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()  # zeros at the start would hide what was not taken
    return model


def source(**options) -> PretrainedLatticeBert:
    return PretrainedLatticeBert(network(OLD, seed=1, **options), OLD)


def test_the_same_vocabulary_takes_every_weight():
    model, given = network(OLD, seed=2), source()
    assert initialise_from(model, given, OLD) == Origins(known=len(OLD), made=0, drawn=0)
    for name, weight in given.network.state_dict().items():
        assert torch.equal(model.state_dict()[name], weight), name


def test_tokens_are_found_by_their_text_and_new_words_made_of_pieces():
    model, given = network(NEW, seed=2), source()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    origins = initialise_from(model, given, NEW)
    assert origins == Origins(known=11, made=2, drawn=3)  # made: 研究生 and 实习生, of which 生 is known
    after, old = model.state_dict(), given.network.state_dict()
    for name in ("bert.embeddings.tokens.weight", "token_bias"):
        for token in [*SPECIAL, *"研究生活很", "生活"]:
            assert torch.equal(after[name][NEW.id(token)], old[name][OLD.id(token)]), token
        mean = sum(old[name][OLD.id(piece)] for piece in "研究生") / 3
        torch.testing.assert_close(after[name][NEW.id("研究生")], mean)
        assert torch.equal(after[name][NEW.id("实习生")], old[name][OLD.id("生")])
        for token in ("实", "习", "实习"):  # nothing is known of these
            assert torch.equal(after[name][NEW.id(token)], before[name][NEW.id(token)]), token
    assert torch.equal(after["bert.layers.1.ff_in.weight"], old["bert.layers.1.ff_in.weight"])


def test_characters_alone_go_on_as_characters_alone():
    """BERT-our has the pieces of a vocabulary alone; the data still has words."""
    pieces = JointVocabulary(pieces=OLD.pieces, words=[])
    model = network(pieces, seed=2)
    given = PretrainedLatticeBert(network(pieces, seed=1), pieces)
    assert initialise_from(model, given, NEW := JointVocabulary(pieces=OLD.pieces, words=["研究生"])).known == len(
        pieces
    )
    assert len(NEW) == len(pieces) + 1
    assert torch.equal(model.token_bias, given.network.token_bias)


def test_heads_that_do_not_fit_stay_as_they_were():
    model = network(OLD, seed=2, n_classes=3)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    initialise_from(model, source(), OLD)
    assert torch.equal(model.sentence.weight, before["sentence.weight"])
    encoder = PretrainedLatticeBert(source().bert, OLD)
    model = network(OLD, seed=2)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    initialise_from(model, encoder, OLD)
    assert torch.equal(model.transform.weight, before["transform.weight"])
    assert torch.equal(model.token_bias, before["token_bias"])
    assert torch.equal(model.bert.pooler.weight, encoder.bert.pooler.weight)


@pytest.mark.parametrize("settings", [{"width": 16}, {"n_layers": 1}, {"relations": None}, {"max_positions": 40}])
def test_another_network_is_refused(settings):
    (name,) = settings
    with pytest.raises(RecipeError, match=rf"other weights than the recipe's: {name} .*leave `model` out"):
        initialise_from(network(OLD, seed=2, **settings), source(), OLD)


def test_a_model_with_an_adapter_is_refused():
    chars = JointVocabulary.build(OLD.pieces, [])
    plain = PretrainedLatticeBert(network(chars, seed=1), chars)
    vectors = tiny.random_table(["研究", "生活"], 6, seed=5)
    adapted = add_adapter(plain, vectors, WordAdapterConfig(n_words=2, word_width=6))
    with pytest.raises(RecipeError, match=r"reads words by an adapter.*start from the model to which"):
        initialise_from(network(chars, seed=2), adapted, chars)


def test_a_run_goes_on_from_another(data_folder: Path, tmp_path: Path, one_thread):
    def run(output: Path, text: str) -> PretrainResult:
        path = tmp_path / f"{output.name}.yaml"
        path.write_text(text, encoding="utf-8")
        recipe = tiny_pretraining.load_pretrain_recipe(path)
        found = pretrain(recipe, data_folder, output, seed=3, device="cpu", show_progress=False)
        assert found is not None
        return found

    first = run(tmp_path / "first", tiny_pretraining.TEXT)
    more = (
        f"start_from: {first.model}\nshort: {{n_steps: 2, n_characters: 48, max_tokens: 65, batch_size: 8}}\n"
        "optimizer: {learning_rate: 1.0e-9}\nschedule: {warmup: 0%}\ntraining: {n_eval_instances: 10}\n"
    )
    second = run(tmp_path / "second", more)
    assert first.origins is None and second.origins is not None
    assert second.origins.made == second.origins.drawn == 0 and second.origins.known > 0
    before, after = (PretrainedLatticeBert.from_pretrained(result.model) for result in (first, second))
    assert after.config == before.config  # that of the model it went on from, where the recipe is silent
    assert torch.equal(  # a rate of next to nothing moves next to nothing
        (after.bert.layers[0].ff_in.weight - before.bert.layers[0].ff_in.weight).abs() < 1e-6,
        torch.ones_like(after.bert.layers[0].ff_in.weight, dtype=torch.bool),
    )
    assert run(tmp_path / "second", more) == second  # finished: told again


def test_a_model_that_is_not_there(tmp_path: Path):
    with pytest.raises(RecipeError, match=r"start_from: .*nowhere is not a pre-trained model"):
        tiny_pretraining.recipe(tmp_path, start_from=tmp_path / "nowhere")


def test_a_tuned_model_is_no_start_and_it_is_said_where_the_one_in_it_lies(tmp_path: Path):
    (tmp_path / "tuned").mkdir()
    (tmp_path / "tuned/manifest.json").write_text('{"kind": "cige tuned model"}', encoding="utf-8")
    with pytest.raises(
        RecipeError, match=r"tuned is not a pre-trained model .*fine-tuned encoder is in its folder encoder/"
    ):
        tiny_pretraining.recipe(tmp_path, start_from=tmp_path / "tuned")
