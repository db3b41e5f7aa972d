"""`cige train` without a recipe: labelled data alone is enough."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import tiny

from cige.cli import main
from cige.commands.start_model import StartModel
from cige.data import Sentence, Span, write_sentences

QUICK = ["--device", "cpu", "--set", "training.n_epochs=1"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_sentences(tmp_path / "my train.bmes", tiny.sentences(30, seed=1))
    write_sentences(tmp_path / "dev.bmes", tiny.sentences(12, seed=2))
    return tmp_path


def facts_of(run: Path) -> dict:
    return json.loads((run / "model" / "manifest.json").read_text(encoding="utf-8"))["facts"]["recipe"]


def test_data_and_dev(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["train", "--data", f"{data}/my train.bmes", "--dev", f"{data}/dev.bmes", "-o", f"{data}/run", *QUICK]
    assert main(argv) == 0
    assert "own-data, seed 1: dev F1" in capsys.readouterr().out
    recipe = facts_of(data / "run")
    assert recipe["start_from"] == "bundled" and recipe["data"]["dev"] == f"{data}/dev.bmes"
    assert main(["predict", "李明在南京市。", "--model", f"{data}/run/model"]) == 0


def test_paths_are_those_of_the_working_folder(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the same name among the data sets is another file."""
    (data / "sets").mkdir()
    (data / "sets" / "我的 数据😀.jsonl").write_text("not this one", encoding="utf-8")
    write_sentences(data / "我的 数据😀.jsonl", tiny.sentences(30, seed=1))
    monkeypatch.chdir(data)
    monkeypatch.setenv("CIGE_DATA", str(data / "sets"))
    assert main(["train", "--data", "我的 数据😀.jsonl", "-o", "run", *QUICK]) == 0
    assert facts_of(data / "run")["data"]["train"] == f"{data}/我的 数据😀.jsonl"


def test_without_dev_the_last_tenth_is_held_out(data: Path) -> None:
    assert main(["train", "--data", f"{data}/my train.bmes", "-o", f"{data}/run", *QUICK]) == 0
    assert facts_of(data / "run")["data"]["n_held_out"] == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give a recipe, or --data FILE"),
        (["--dev", "dev.bmes"], "--dev requires --data"),
        (["--data", "one.bmes"], "expected two or more"),
        (["--data", "none.bmes", "--dev", "dev.bmes"], "none.bmes"),
    ],
)
def test_what_is_missing_is_told(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    monkeypatch.chdir(data)
    write_sentences(data / "one.bmes", tiny.sentences(1))
    assert main(["train", *options, "--output", "run"]) == 2
    assert message in capsys.readouterr().err


# ---- labels that the model to start from does not know


NAMES = {"PER": "name", "LOC": "address", "ORG": "company"}
PROPOSAL = "--labels address=LOC company=COMPANY name=PER"


@pytest.fixture
def renamed(tmp_path: Path) -> Path:
    """Labelled files with labels as in CLUENER."""
    for name, n, seed in (("train", 30, 1), ("dev", 12, 2)):
        sentences = [
            Sentence(s.text, tuple(Span(x.start, x.end, NAMES[x.label]) for x in s.spans))
            for s in tiny.sentences(n, seed=seed)
        ]
        write_sentences(tmp_path / f"{name}.bmes", sentences)
    return tmp_path


def train_on(folder: Path, *options: str, run: str = "run") -> int:
    files = ["--data", f"{folder}/train.bmes", "--dev", f"{folder}/dev.bmes", "-o", f"{folder}/{run}"]
    return main(["train", *files, *options, *QUICK])


def test_labels_with_another_name_are_told_with_the_option_to_paste(renamed: Path, capsys) -> None:
    assert train_on(renamed) == 0
    out, err = capsys.readouterr()
    assert "labels that the bundled model does not know: address, company, name" in err
    assert f"\n  {PROPOSAL}\n" in err
    assert " before training)" in out
    assert set(json.loads((renamed / "run/model/manifest.json").read_text())["labels"]) == set(NAMES.values())


def test_renamed_labels_are_those_of_the_new_model(renamed: Path, capsys) -> None:
    assert train_on(renamed, "--labels", "name=PER,address=LOC", "company=") == 0
    out, err = capsys.readouterr()
    assert "does not know" not in err and " before training)" in out
    assert json.loads((renamed / "run/model/manifest.json").read_text())["labels"] == ["LOC", "PER"]
    assert main(["evaluate", "--model", f"{renamed}/run", "--data", f"{renamed}/dev.bmes"]) == 2
    assert "--labels address=LOC company= name=PER" in capsys.readouterr().err
    # the same command again continues the run, and one with other labels is refused or starts over
    assert train_on(renamed, "--labels", "name=PER,address=LOC", "company=") == 0


def test_without_dev_renamed_sentences_are_held_out(renamed: Path) -> None:
    argv = ["train", "--data", f"{renamed}/train.bmes", "-o", f"{renamed}/run", "--labels", "name=PER", "company=ORG"]
    assert main([*argv, *QUICK]) == 0
    assert facts_of(renamed / "run")["data"]["n_held_out"] == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["weibo/flat", "--labels", "a=b"], "--labels requires --data"),
        (["--data", "train.bmes", "--labels", "name"], "expected DATA=MODEL"),
    ],
)
def test_labels_need_data_and_two_names(renamed: Path, monkeypatch, capsys, options: list[str], message: str) -> None:
    monkeypatch.chdir(renamed)
    assert main(["train", *options, "--output", "run"]) == 2
    assert message in capsys.readouterr().err
    assert not (renamed / "run").exists()


def test_a_folder_with_other_files_is_refused_before_anything_is_written(renamed: Path, capsys) -> None:
    (renamed / "run").mkdir()
    (renamed / "run" / "mine.txt").touch()
    assert train_on(renamed, "--labels", "name=PER") == 2
    assert "files that no run wrote" in capsys.readouterr().err
    assert sorted(path.name for path in (renamed / "run").iterdir()) == ["mine.txt"]


class Known:
    """A finder that finds the places of two sentences."""

    labels = ("LOC", "PER")
    label_facts = SimpleNamespace(nested=False)

    def pipe(self, texts, *, labels):
        assert labels == ["LOC"]
        return [[Span(0, 2, "LOC")] for _ in texts]


def start_model(monkeypatch, sentences, start_from="bundled", head="crf", labels=("x", "")) -> StartModel:
    monkeypatch.setattr("cige.api.load", lambda folder: Known())
    monkeypatch.setattr("cige.training.recipe.start_folder", lambda given: given)
    recipe = SimpleNamespace(start_from=start_from, head=head)
    return StartModel(recipe, sentences, sentences, dict([labels]))


def test_dev_f1_before_training(monkeypatch, capsys) -> None:
    sentences = [
        Sentence("北京好", (Span(0, 2, "address"),)),
        Sentence("上海好", (Span(0, 2, "address"), Span(2, 3, "else"))),
    ]
    start = start_model(monkeypatch, sentences)
    assert start.dev_f1() == pytest.approx(0.8)  # two of two found, one of three missed
    start.note_loss(0.8, 0.8)
    assert capsys.readouterr().err == ""
    start.note_loss(0.8, 0.5)
    err = capsys.readouterr().err
    assert "the bundled model has dev F1 80.00 without training, more than 50.00 after it" in err
    assert "renaming labels keeps what the model knows" in err and "--labels x= address=LOC" in err


def test_a_label_that_was_renamed_already_is_proposed_by_its_name_in_the_file(monkeypatch) -> None:
    sentences = [Sentence("北京好", (Span(0, 2, "address"),))]  # a 地方 of the file
    start = start_model(monkeypatch, sentences, labels=("地方", "address"))
    assert start.option == "--labels '地方=LOC'"


def test_a_model_that_knows_all_labels_may_be_used_as_it_is(monkeypatch, capsys) -> None:
    start = start_model(monkeypatch, [Sentence("北京好", (Span(0, 2, "LOC"),))], start_from="runs/a")
    start.note_labels()
    assert capsys.readouterr().err == ""
    assert start.dev_f1() == 1.0
    start.note_loss(1.0, 0.9)
    err = capsys.readouterr().err
    assert err.startswith("cige: runs/a has dev F1 100.00") and "use that model as it is" in err


@pytest.mark.parametrize("label", ["else", "?", "LOC|PER"])
def test_what_cannot_be_compared_has_no_f1(monkeypatch, label: str) -> None:
    sentences = [Sentence("北京好", (Span(0, 2, label),))]
    if label != "else":
        sentences.append(Sentence("北京好", (Span(0, 2, "LOC"),)))
    assert start_model(monkeypatch, sentences).dev_f1() is None


def test_a_flat_model_is_not_compared_with_one_that_finds_nested_entities(monkeypatch) -> None:
    sentences = [Sentence("北京好", (Span(0, 2, "LOC"),))]
    assert start_model(monkeypatch, sentences, head="pair_grid").dev_f1() is None
    monkeypatch.setattr(Known, "label_facts", SimpleNamespace(nested=True))
    assert start_model(monkeypatch, sentences, head="pair_grid").dev_f1() == 1.0
