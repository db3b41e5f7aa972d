"""`cige pseudo-label`: raw text labelled by what models agree on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import tiny
import tiny_grid
import tiny_run

import cige
from cige.cli import main
from cige.data import read_sentences, write_sentences
from cige.data.sentence import OPEN, Sentence, Span
from cige.training.recipe import DataConfig
from cige.training.train import train


@pytest.fixture
def models(tmp_path: Path) -> list[str]:
    tiny.trained_model().save(tmp_path / "a")
    tiny.trained_model().save(tmp_path / "b")
    return [str(tmp_path / "a"), str(tmp_path / "b")]


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    path = tmp_path / "raw.txt"
    path.write_text("".join(s.text + "\n" for s in tiny.sentences(40, seed=5)) + "太短\n\n", encoding="utf-8")
    return path


def test_models_that_agree_label_the_text(models, raw, tmp_path, capsys):
    out = tmp_path / "agreed.jsonl"
    assert (
        main(["pseudo-label", str(raw), str(out), "--model", models[0], "--model", models[1], "--chars", "4", "90"])
        == 0
    )
    ner = cige.load(models[0])
    agreed = read_sentences(out)
    assert 0 < len(agreed) <= 40 and f"{len(agreed):,} sentences" in capsys.readouterr().out
    for sentence in agreed:
        found = {(e.start, e.end): e for e in ner(sentence.text)}
        assert {(s.start, s.end) for s in sentence.spans} == set(found)
        for span in sentence.spans:
            entity = found[span.start, span.end]
            assert span.label == (entity.label if entity.score >= 0.5 else OPEN)


def test_of_nested_entities_the_likeliest_count(raw, tmp_path):
    tiny_grid.model().save(tmp_path / "nested")
    out, model = tmp_path / "agreed.jsonl", str(tmp_path / "nested")
    options = ["--min-score", "0", "--max-open", "0", "--chars", "4", "90"]
    assert main(["pseudo-label", str(raw), str(out), "--model", model, *options]) == 0
    texts = [sentence.text for sentence in read_sentences(out)]  # they can be read without nested=True
    ner = cige.load(model)
    assert any(
        len(entities) < len(ner(text)) for text, entities in zip(texts, ner.pipe(texts, nested=False), strict=True)
    )


def test_why_no_line_was_kept(models, raw, tmp_path, capsys):
    argv = ["pseudo-label", str(raw), str(tmp_path / "x.jsonl"), "--model", models[0], "--chars", "4", "90"]
    assert main([*argv, "--min-score", "1", "--max-open", "0", "--keep-empty", "0"]) == 2
    assert "with more than 0% of open text (--max-open)" in capsys.readouterr().err
    assert main([*argv, "--chars", "60", "50"]) == 2
    assert "expected the smallest number first, such as --chars 50 60" in capsys.readouterr().err
    assert main([*argv, "--chars", "500", "600"]) == 2
    assert "no line of 500 to 600 characters\n" in capsys.readouterr().err


def test_a_model_of_one_label_judges_it_alone(models, raw, tmp_path):
    out = tmp_path / "agreed.jsonl"
    arguments = [
        "--model",
        models[0],
        "--model",
        f"{models[1]}=LOC",
        "--keep-empty",
        "1",
        "--n",
        "7",
        "--max-open",
        "1",
    ]
    assert main(["pseudo-label", str(raw), str(out), *arguments]) == 0
    assert len(read_sentences(out)) == 7


def test_one_model_labels_what_it_is_sure_of(models, raw, tmp_path):
    out = tmp_path / "out.jsonl"
    everything = ["--max-open", "1", "--keep-empty", "1", "--chars", "1", "1000"]
    assert main(["pseudo-label", str(raw), str(out), "--model", models[0], "--min-score", "0.5", *everything]) == 0
    own = cige.load(models[0])
    for sentence in read_sentences(out):
        sure = [(e.start, e.end, e.label) for e in own(sentence.text) if e.score >= 0.5]
        assert [(s.start, s.end, s.label) for s in sentence.spans if s.label != "?"] == sure


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "{0}", "--model", "{1}=XYZ"], "it has no label XYZ; it has LOC"),
        (["--model", "{0}", "--model", "{1}", "--chars", "5000", "6000"], "no line of 5000 to 6000 characters"),
    ],
)
def test_bad_input(models, raw, tmp_path, arguments, message, capsys):
    arguments = [a.format(*models) for a in arguments]
    assert main(["pseudo-label", str(raw), str(tmp_path / "out.jsonl"), *arguments]) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "out.jsonl").exists()


def test_a_tagger_learns_from_what_is_left_open(tmp_path):
    """Half of the entities are open; what is learnt from the others covers them."""
    sentences = [
        Sentence(s.text, tuple(Span(x.start, x.end, OPEN if (k + n) % 2 else x.label) for n, x in enumerate(s.spans)))
        for k, s in enumerate(tiny.sentences(120, seed=3))
    ]
    data = tiny_run.write_data_folder(tmp_path / "data")
    write_sentences(data / "open.jsonl", sentences)
    write_sentences(data / "dev.jsonl", tiny.sentences(30, seed=9))
    recipe = tiny_run.tiny_recipe()
    recipe = replace(
        recipe,
        data=DataConfig(train="open.jsonl", dev="dev.jsonl"),
        training=replace(recipe.training, n_epochs=10),
    )
    result = train(recipe, tmp_path / "run", data_dir=data, show_progress=False)
    assert OPEN not in cige.load(result.model).labels
    assert result.dev_f1 > 0.6


def test_a_folder_may_have_an_equals_sign_in_its_name(raw, tmp_path):
    tiny.trained_model().save(tmp_path / "rate=1e-3")
    argv = ["pseudo-label", str(raw), str(tmp_path / "o.jsonl"), "--model", str(tmp_path / "rate=1e-3")]
    assert main([*argv, "--chars", "4", "90"]) == 0
