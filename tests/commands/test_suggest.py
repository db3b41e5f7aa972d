"""`cige suggest`: what is written, what a mistake costs, and the whole way from unlabelled text to a trained model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tiny

import cige
from cige.cli import main
from cige.commands import suggest
from cige.data import read_sentences
from cige.data.documents import read_documents
from cige.entities import Entity
from cige.suggest import selecting

KNOWN = {s.text: s for s in tiny.sentences(300, seed=7)}  # each text once


@pytest.fixture
def model(tmp_path: Path) -> str:
    tiny.trained_model().save(tmp_path / "model")
    return str(tmp_path / "model")


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    path = tmp_path / "unlabelled.txt"
    path.write_text("".join(text + "\n" for text in KNOWN), encoding="utf-8")
    return path


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_entities_with_gaps_are_written_with_their_parts_or_not_at_all(model, raw, tmp_path, capsys, monkeypatch):
    parts = ((0, 2), (3, 5))

    def gapped(finder, texts, *_):
        return [[Entity(0, 5, "ORG", text[:2] + text[3:5], 0.9, parts=parts)] for text in texts]

    monkeypatch.setattr(cige.NER, "stream", gapped)
    argv = ["suggest", str(raw), str(tmp_path / "out"), "-m", model, "--n", "2", "--strategy", "random"]
    assert main(argv) == 2 and not (tmp_path / "out").exists()
    error = capsys.readouterr().err
    assert "which --format doccano cannot hold; give --format jsonl, or --no-labels" in error and "gaps" in error
    assert main([*argv, "--format", "jsonl"]) == 0
    assert [span.parts for task in read_documents(tmp_path / "out", format="jsonl") for span in task.spans] == [
        parts
    ] * 2


@pytest.mark.parametrize("form", ["doccano", "label-studio", "jsonl"])
def test_tasks_have_the_labels_of_the_model(model, raw, tmp_path, capsys, form):
    out = tmp_path / "out.json"
    assert main(["suggest", str(raw), str(out), "-m", model, "--n", "5", "--format", form, "--strategy", "random"]) == 0
    assert "5 sentences of" in capsys.readouterr().out
    ner, tasks = cige.load(model), read_documents(out, format=form)
    assert [task.meta["rank"] for task in tasks] == [1, 2, 3, 4, 5]
    assert any(task.spans for task in tasks)
    for task in tasks:
        assert [(s.start, s.end, s.label) for s in task.spans] == [(e.start, e.end, e.label) for e in ner(task.text)]
        assert raw.read_text(encoding="utf-8").splitlines()[task.meta["line"] - 1] == task.text
        assert task.is_suggested == (form == "label-studio")


def test_typed_words_and_requests_count_as_in_predict(model, raw, tmp_path):
    name = "\u9123\u9456\u9789"
    raw.write_text(f"我们在{name}见面\n", encoding="utf-8")
    words, out = tmp_path / "words.jsonl", tmp_path / "out.jsonl"
    words.write_text(json.dumps({"word": name, "label": "LOC", "mode": "force"}) + "\n", encoding="utf-8")
    argv = ["suggest", str(raw), str(out), "-m", model, "--lexicon-add", str(words)]
    assert main(argv) == 0
    (task,) = lines_of(out)
    assert [3, 6, "LOC"] in task["label"]
    out.unlink()
    assert main([*argv, "--labels", "PER"]) == 0
    assert [3, 6, "LOC"] not in lines_of(out)[0]["label"]
    out.unlink()
    assert main([*argv, "--no-labels"]) == 0
    assert lines_of(out)[0]["label"] == []


def test_without_labels_random_sentences_need_no_model(raw, tmp_path, monkeypatch):
    monkeypatch.setattr(suggest, "load_finder", None)
    out = tmp_path / "dev.jsonl"
    assert main(["suggest", str(raw), str(out), "--strategy", "random", "--n", "4", "--no-labels"]) == 0
    assert len(lines_of(out)) == 4


def test_labelled_files_of_any_format_are_excluded(model, raw, tmp_path):
    first, second, third = (tmp_path / f"{number}.json" for number in (1, 2, 3))
    argv = ["suggest", str(raw), "-m", model, "--n", "6"]
    assert main([*argv, str(first), "--strategy", "diversity", "--format", "label-studio"]) == 0
    assert main([*argv, str(second), "--exclude", str(first)]) == 0
    assert main([*argv, str(third), "--exclude", str(first), "--exclude", str(second)]) == 0
    chosen = [document.text for path in (first, second, third) for document in read_documents(path)]
    assert len(chosen) == len(set(chosen)) == 18


def test_what_is_labelled_already_is_told(tmp_path, capsys):
    raw = tmp_path / "raw.txt"
    raw.write_text("李明在北京。\n王芳去上海了。\n张桂梅教书。\n", encoding="utf-8")
    argv = ["suggest", str(raw), "--strategy", "random", "--no-labels", "--n", "9"]
    for lines, expected in (
        ([], "of 3 lines)"),
        (["李明在北京。"], "of 3 lines; 1 is labelled already)"),
        (["李明在北京。", "王芳去上海了。"], "of 3 lines; 2 are labelled already)"),
    ):
        done = tmp_path / f"{len(lines)}.jsonl"
        done.write_text("".join(json.dumps({"text": line, "entities": []}) + "\n" for line in lines), encoding="utf-8")
        exclude = ["--exclude", str(done)] if lines else []
        assert main([*argv, str(tmp_path / f"out{len(lines)}.jsonl"), *exclude]) == 0
        out, err = capsys.readouterr()
        assert expected in out and "9 were requested" in err


def test_the_lines_of_documents_in_json_are_suggested(model, tmp_path, capsys):
    documents = [{"data": {"text": "李明在北京。\n王芳去上海了。"}}, {"data": {"text": "张桂梅教书。"}}]
    (tmp_path / "tasks.json").write_text(json.dumps(documents, indent=1), encoding="utf-8")
    argv = ["suggest", str(tmp_path / "tasks.json"), str(tmp_path / "out.jsonl"), "-m", model]
    assert main([*argv, "--n", "3", "--strategy", "random"]) == 0
    assert {task["text"] for task in lines_of(tmp_path / "out.jsonl")} == {
        "李明在北京。",
        "王芳去上海了。",
        "张桂梅教书。",
    }
    assert "3 sentences of 19 characters, out of 3 (of 3 lines)" in capsys.readouterr().out
    (tmp_path / "out.jsonl").unlink()
    assert main([*argv, "--n", "1", "--strategy", "random"]) == 0
    assert "1 sentence of " in capsys.readouterr().out


def test_a_selection_that_is_stopped_goes_on(model, raw, tmp_path, monkeypatch, capsys):
    out, whole = tmp_path / "out.jsonl", tmp_path / "whole.jsonl"
    monkeypatch.setattr(selecting, "READ_AT_ONCE", 40)
    argv = ["suggest", str(raw), "-m", model, "--n", "7"]
    assert main([*argv, str(whole)]) == 0
    sentences_of, n_read = suggest.sentences_of, []

    def stopped(source):
        for number, text in enumerate(sentences_of(source)):
            if number == 130 and not n_read:
                n_read.append(number)
                raise KeyboardInterrupt
            yield text

    monkeypatch.setattr(suggest, "sentences_of", stopped)
    capsys.readouterr()
    assert main([*argv, str(out)]) == 130
    assert not out.exists() and "run the same command again" in capsys.readouterr().err
    assert main([*argv, str(out), "--seed", "2"]) == 0  # another selection begins anew
    assert "going on" not in capsys.readouterr().err
    out.unlink()
    n_read.clear()
    assert main([*argv, str(out)]) == 130
    assert main([*argv, str(out)]) == 0
    assert "resuming after line 120" in capsys.readouterr().err
    assert out.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["missing.txt", "out.jsonl"], "missing.txt: no such file"),
        ([".", "out.jsonl"], "a folder; expected a file of sentences"),
        (["unlabelled.txt", "new.jsonl", "--labels", "CITY"], "no label CITY"),
        (["unlabelled.txt", "new.jsonl", "--chars", "9", "3"], "smallest number first, such as --chars 3 9"),
        (["unlabelled.txt", "new.jsonl", "--chars", "900", "901"], "no line in it, of "),
        (["unlabelled.txt", "new.jsonl", "--exclude", "none.jsonl"], "none.jsonl"),
        (["unlabelled.txt", "out.jsonl", "--exclude", "out.jsonl"], "is also an input file"),
        (["unlabelled.txt", "unlabelled.txt"], "is also an input file"),
        (["unlabelled.txt", "out.jsonl"], "out.jsonl: already exists, and may have been labelled; give another name"),
        (["-", "out.jsonl"], "out.jsonl: already exists"),
    ],
)
def test_mistakes_are_told_and_change_nothing(model, raw, monkeypatch, capsys, options, message):
    monkeypatch.chdir(raw.parent)
    (raw.parent / "out.jsonl").write_text("mine", encoding="utf-8")
    assert main(["suggest", *options, "-m", model]) == 2
    assert message in capsys.readouterr().err
    assert (raw.parent / "out.jsonl").read_text(encoding="utf-8") == "mine"
    assert not (raw.parent / "new.jsonl").exists()


def test_fewer_than_asked_for_is_told(model, raw, tmp_path, capsys):
    assert main(["suggest", str(raw), str(tmp_path / "out.jsonl"), "-m", model, "--n", "9999"]) == 0
    assert "9,999 were requested" in capsys.readouterr().err


NEW = {"PER": "人物", "LOC": "地点", "ORG": "机构"}
QUICK = ["--device", "cpu", "--set", "training.n_epochs=1", "batches.batch_size=12"]


def doccano_answer(tasks: Path, answer: Path) -> None:
    """What doccano exports when the annotator has put the user's own labels in place of the model's."""
    with answer.open("a", encoding="utf-8") as file:
        for number, task in enumerate(lines_of(tasks), 1):
            gold = [[s.start, s.end, NEW[s.label]] for s in KNOWN[task["text"]].spans]
            file.write(json.dumps(task | {"id": number, "label": gold, "Comments": []}, ensure_ascii=False) + "\n")


def label_studio_answer(tasks: Path, answer: Path) -> None:
    """What Label Studio exports: the annotations, beside the predictions they began from; one task was skipped."""
    exported = json.loads(tasks.read_text(encoding="utf-8"))
    for number, task in enumerate(exported, 1):
        spans = KNOWN[task["data"]["text"]].spans
        values = [{"start": s.start, "end": s.end, "labels": [NEW[s.label]]} for s in spans]
        result = [{"type": "labels", "from_name": "label", "to_name": "text", "value": value} for value in values]
        task |= {"id": number, "annotations": [{"result": result, "was_cancelled": number == 1}]}
    answer.write_text(json.dumps(exported), encoding="utf-8")


def test_two_rounds_with_doccano(model, raw, tmp_path, capsys):
    """Suggest, label with types of one's own, train from a model, and suggest again with the model that came out."""
    answers = tmp_path / "answers.jsonl"
    start = model
    for number, strategy in enumerate(("diversity", "both"), 1):
        tasks, run = tmp_path / f"round{number}.jsonl", tmp_path / f"run{number}"
        argv = ["suggest", str(raw), str(tasks), "-m", start, "--strategy", strategy, "--n", "20"]
        assert main([*argv, *(["--exclude", str(answers)] if answers.exists() else [])]) == 0
        doccano_answer(tasks, answers)
        own = [*QUICK, f"start_from={model}"]
        assert main(["train", "--data", str(answers), "-o", str(run), *own]) == 0
        start = str(run)
    sentences = read_sentences(answers)
    assert len({s.text for s in sentences}) == 40
    assert all([(p.start, p.end, NEW[p.label]) for p in KNOWN[s.text].spans] ==
               [(p.start, p.end, p.label) for p in s.spans] for s in sentences)  # fmt: skip
    assert cige.load(start).labels == sorted(NEW.values())
    assert set(label for task in lines_of(tmp_path / "round2.jsonl") for _, _, label in task["label"]) <= set(
        NEW.values()
    )


def test_an_answer_of_label_studio_is_learnt_from(model, raw, tmp_path):
    tasks, answer, run = tmp_path / "tasks.json", tmp_path / "answer.json", tmp_path / "run"
    assert main(["suggest", str(raw), str(tasks), "-m", model, "--n", "20", "--format", "label-studio"]) == 0
    label_studio_answer(tasks, answer)
    assert len(read_sentences(answer)) == 19  # but for the one that was skipped, whose prediction nobody confirmed
    assert main(["train", "--data", str(answer), "-o", str(run), *QUICK, f"start_from={model}"]) == 0
    assert cige.load(run).labels == sorted(NEW.values())


def test_tasks_that_nobody_answered_are_not_learnt_from(model, raw, tmp_path, capsys):
    tasks = tmp_path / "tasks.json"
    assert main(["suggest", str(raw), str(tasks), "-m", model, "--n", "20", "--format", "label-studio"]) == 0
    assert main(["train", "--data", str(tasks), "-o", str(tmp_path / "run"), *QUICK]) == 2
    assert "20 have a model's predictions, which nobody has submitted" in capsys.readouterr().err


def test_the_help_lists_the_strategies_there_are():
    assert suggest.STRATEGIES == selecting.STRATEGIES
