"""Learning from several corpora that annotate different types."""

from __future__ import annotations

import shutil
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import tiny
import tiny_run

import cige
from cige.data import write_sentences
from cige.data.reading import read_sentences
from cige.data.sentence import Sentence, Span
from cige.errors import DataError, RecipeError
from cige.recipes.shipped import NAMES
from cige.training.recipe import DataConfig, Recipe, SourceConfig, load_recipe, recipe_from_dict, recipe_to_yaml
from cige.training.sources import (
    NoDevelopmentEntityWarning,
    RepeatedSentenceWarning,
    UnlearnedLabelWarning,
    UnmeasuredLabelWarning,
    golds_of,
    read_data,
    read_sources,
    warn_of_misleading_scores,
)
from cige.training.train import train

TYPES = """
parents: {CITY: LOC}
sources:
  people:
    map: {PER: PER, LOC: null, ORG: null}
    annotated: [PER]
  places:
    map: {LOC: [LOC], PER: null, ORG: null}
    annotated: [LOC]
"""


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    folder = tiny_run.write_data_folder(tmp_path / "data")
    (folder / "types.yaml").write_text(TYPES, encoding="utf-8")
    for name, seed in (("people", 3), ("places", 4)):
        path = folder / f"ner/{name}/train.bmes.xz"
        path.parent.mkdir(parents=True)
        write_sentences(path, tiny.sentences(60, seed=seed))
    return folder


def recipe_of(**data: object) -> Recipe:
    sources = {"people": SourceConfig(n_held_out=12), "places": SourceConfig(n_held_out=10, weight=0.5)}
    return replace(tiny_run.tiny_recipe(), data=DataConfig(**{"sources": sources, "types": "types.yaml"} | data))  # type: ignore[arg-type]


def labels_of(sentences: list[Sentence]) -> set[str]:
    return {span.label for sentence in sentences for span in sentence.spans}


def test_sources_are_read_by_their_types(data_dir: Path) -> None:
    (people, places), labels = read_sources(recipe_of().data, data_dir)
    assert labels == ["LOC", "PER"]
    assert (len(people.train), len(people.dev), len(places.train), len(places.dev)) == (48, 12, 50, 10)
    assert labels_of(people.train + people.dev) == {"PER"} and labels_of(places.train + places.dev) == {"LOC"}
    tags = ["O", *(f"{p}-{label}" for label in labels for p in "BMES")]
    golds = golds_of([people, places], tags, "BMES", labels)
    table = golds[0].sets.log_weights == 0
    (number,) = golds[0].ids(Sentence("他"))
    assert [tags[k] for k in table[number].nonzero()[0]] == ["O", "B-LOC", "M-LOC", "E-LOC", "S-LOC"]


def test_a_tagger_learns_the_types_of_both(data_dir: Path, tmp_path: Path) -> None:
    recipe = replace(recipe_of(), training=replace(tiny_run.tiny_recipe().training, n_epochs=10))
    result = train(recipe, tmp_path / "run", data_dir=data_dir, show_progress=False)
    scores = result.history[-1].scores
    assert set(scores) == {"f1", "precision", "recall", "f1 people", "f1 places"}
    assert scores["f1"] == pytest.approx((scores["f1 people"] + scores["f1 places"]) / 2)
    assert result.dev_f1 > 0.6
    again = train(recipe, tmp_path / "again", data_dir=data_dir, show_progress=False)
    assert again.history[-1].train == result.history[-1].train


def test_the_model_knows_its_tree_and_which_types_are_silent(data_dir: Path, tmp_path: Path) -> None:
    (data_dir / "types.yaml").write_text(TYPES.replace("map: {LOC: [LOC]", "map: {LOC: [CITY]"), encoding="utf-8")
    recipe = replace(recipe_of(silent=("PER",)), training=replace(tiny_run.tiny_recipe().training, n_epochs=1))
    facts = cige.load(train(recipe, tmp_path / "run", data_dir=data_dir, show_progress=False).model).label_facts
    assert facts.parents == {"CITY": "LOC"} and facts.silent == {"PER"} and set(facts.max_lengths) <= {"CITY", "PER"}


def test_a_weight_of_nothing_leaves_a_corpus_out(data_dir: Path) -> None:
    data = recipe_of(sources={"people": SourceConfig(), "nowhere": SourceConfig(weight=0)}).data
    sources, labels = read_sources(data, data_dir)
    assert [source.name for source in sources] == ["people"] and labels == ["PER"]


def test_labels_that_only_development_sentences_have_are_told(tmp_path: Path) -> None:
    train, dev = tmp_path / "train.jsonl", tmp_path / "dev.jsonl"
    write_sentences(train, [Sentence("北京", (Span(0, 2, "LOC|ORG"),)), Sentence("张三说", (Span(0, 2, "PER"),))])
    labels = ("ORG", "LOC|SHIP", "?", "SHIP", "SHIP", "Per")
    write_sentences(dev, [Sentence("上海", (Span(0, 2, label),)) for label in labels])
    data = DataConfig(train=str(train), dev=str(dev))
    told = r"^3 development entities cannot be found, .*: Per \(1\), SHIP \(2\)$"
    with pytest.warns(UnlearnedLabelWarning, match=told):
        warn_of_misleading_scores(read_sources(data)[0])
    write_sentences(dev, [Sentence("上海", (Span(0, 2, label),)) for label in labels[:3]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_misleading_scores(read_sources(data)[0])


def test_labels_that_development_sentences_lack_are_told(tmp_path: Path) -> None:
    train, dev = tmp_path / "train.jsonl", tmp_path / "dev.jsonl"
    person, ship, both = (Sentence("张三说", (Span(0, 2, label),)) for label in ("PER", "SHIP", "PER|SHIP"))
    write_sentences(train, [Sentence(f"{k}", ()) for k in range(8)] + [person] * 2 + [ship] * 10)
    data = DataConfig(train=str(train), dev=str(dev))
    lacking = [Sentence("北京", ()), Sentence("李四", (Span(0, 2, "PER"),))] * 5
    write_sentences(dev, lacking)
    told = r"^no development entity has the label SHIP \(10 in the training data\): dev F1 counts all"
    with pytest.warns(UnmeasuredLabelWarning, match=told):
        warn_of_misleading_scores(read_sources(data)[0])
    for enough in ([*lacking, both], lacking[:8]):  # one is there; and of 8 sentences, four would be expected
        write_sentences(dev, enough)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UnmeasuredLabelWarning)
            warn_of_misleading_scores(read_sources(data)[0])


@pytest.mark.parametrize("label", ["O", "*", "PER|O"])
def test_labels_that_mean_something_else_are_refused(tmp_path: Path, label: str) -> None:
    train = tmp_path / "train.jsonl"
    write_sentences(train, [Sentence("张三说", (Span(0, 2, "PER"),)), Sentence("北京", (Span(0, 2, label),))])
    with pytest.raises(DataError, match=r"have the label '[O*]', which cannot be learned: .*\(--labels '[O*]=NAME'\)"):
        read_sources(DataConfig(train=str(train), dev=str(train)))


def test_development_sentences_without_entities_are_told(tmp_path: Path) -> None:
    train, dev = tmp_path / "train.jsonl", tmp_path / "dev.jsonl"
    write_sentences(train, [Sentence("张三说", (Span(0, 2, "PER"),))])
    write_sentences(dev, [Sentence("他说"), Sentence("她说")])
    data = DataConfig(train=str(train), dev=str(dev))
    with pytest.warns(NoDevelopmentEntityWarning, match=r"^dev: 2 development sentences without any entity: F1 is 0"):
        warn_of_misleading_scores(read_sources(data)[0])
    write_sentences(dev, [Sentence("他说"), Sentence("李四来", (Span(0, 2, "PER"),))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_misleading_scores(read_sources(data)[0])


def test_development_sentences_that_are_in_the_training_data_are_told(tmp_path: Path) -> None:
    train, dev = tmp_path / "train.jsonl", tmp_path / "dev.jsonl"
    both = Sentence("张三说", (Span(0, 2, "PER"),))
    write_sentences(train, [both, Sentence("李四说", (Span(0, 2, "PER"),))])
    others = [Sentence(f"{k}号的张三", (Span(len(str(k)) + 2, len(str(k)) + 4, "PER"),)) for k in range(99)]
    data = DataConfig(train=str(train), dev=str(dev))
    write_sentences(dev, [both, both, *others])
    with pytest.warns(
        RepeatedSentenceWarning, match=r"^2 of 101 development sentences, with 2 of 101 entities, are in"
    ):
        warn_of_misleading_scores(read_sources(data)[0])
    write_sentences(dev, [both, *others])  # one in a hundred
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_misleading_scores(read_sources(data)[0])


def test_sentences_of_another_corpus_are_told_too(data_dir: Path) -> None:
    people = read_sentences(data_dir / "ner/people/train.bmes.xz")
    write_sentences(data_dir / "people.bmes", people[:20])
    sources = {"people": SourceConfig(train="people.bmes", n_held_out=1), "places": SourceConfig(dev="people.bmes")}
    with pytest.warns(RepeatedSentenceWarning, match="^19 of 21 development sentences"):
        warn_of_misleading_scores(read_sources(recipe_of(sources=sources).data, data_dir)[0])


def test_a_run_is_warned_of_when_it_is_trained_and_not_when_it_is_read(tmp_path: Path) -> None:
    data_dir = tiny_run.write_data_folder(tmp_path / "data")
    shutil.copy(data_dir / "ner/tiny/train.bmes", data_dir / "ner/tiny/dev.bmes")
    recipe = tiny_run.tiny_recipe(n_epochs=1)
    with pytest.warns(RepeatedSentenceWarning):
        result = train(recipe, tmp_path / "run", data_dir=data_dir, show_progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RepeatedSentenceWarning)
        assert train(recipe, tmp_path / "run", data_dir=data_dir, show_progress=False) == result


def test_mistakes_are_named(data_dir: Path) -> None:
    with pytest.raises(RecipeError, match="does not describe nowhere; it has people, places"):
        read_sources(recipe_of(sources={"nowhere": SourceConfig()}).data, data_dir)
    with pytest.raises(RecipeError, match=r"people: n_held_out is 60, but there are 60"):
        read_sources(recipe_of(sources={"people": SourceConfig(n_held_out=60)}).data, data_dir)
    (data_dir / "types.yaml").write_text("people: {map: {PER: PER}, annotated: [PER]}", encoding="utf-8")
    with pytest.raises(DataError, match=r"people: the label '(LOC|ORG)' is not in its types: PER"):
        read_sources(recipe_of(sources={"people": SourceConfig()}).data, data_dir)
    with pytest.raises(RecipeError, match="several corpora"):
        read_data(recipe_of().data, data_dir)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"sources": {"msra": {}}}, "data.sources requires data.types"),
        ({"types": "names", "dataset": "msra"}, "data.sources requires data.types"),
        ({"sources": {"msra": {}}, "types": "names", "dataset": "msra"}, "give one of"),
        ({"sources": {"msra": {}}, "types": "names", "scheme": "BIO"}, "BIO"),
        ({"sources": {"msra": {"weight": 0}}, "types": "names"}, "all weights are 0"),
        ({"sources": {"msra": {"weight": -1}}, "types": "names"}, r"data.sources.msra.weight is -1"),
        ({"sources": {"msra": {"size": 1}}, "types": "names"}, r"unknown key 'data.sources.msra.size'"),
        ({"sources": ["msra"], "types": "names"}, r"expected a mapping of names"),
        ({"dataset": "msra", "labels": ["PER"]}, "require data.sources"),
    ],
)
def test_contradictions_are_named(data: dict, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        recipe_from_dict({"name": "x", "data": data})


def test_the_recipe_of_the_bundled_model_reads_well() -> None:
    recipe = load_recipe(NAMES, ["data.sources.msra.weight=0.25"])
    assert recipe.data.sources["msra"].weight == 0.25 and recipe.data.sources["weibo"].weight == 3
    assert recipe_to_yaml(recipe).count("weight:") == len(recipe.data.sources)
