"""What a job says of the model, the lexicon and the precision that read each part, and what it refuses to mix."""

from __future__ import annotations

import json
from dataclasses import replace

import bulk_jobs
import pytest

from cige.bulk import local
from cige.cli import main
from cige.errors import ModelError
from cige.lexicon.word_versions import WordVersions


def json_of(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_precision_is_recorded_and_never_mixed(tmp_path):
    source = tmp_path / "texts.txt"
    source.write_text(bulk_jobs.lines(6), encoding="utf-8")
    job = bulk_jobs.plan(source, tmp_path / "out")
    bulk_jobs.done(job)
    precision = bulk_jobs.annotator().finder.model.precision
    assert json_of(tmp_path / "out" / "manifest.json")["precision"] == precision
    assert json_of(tmp_path / "out" / "commits" / "part-000000.json")["precision"] == precision
    other = replace(job, versions=replace(job.versions, precision="another"))
    with pytest.raises(ModelError, match=r"has another precision .the precision was "):
        other.begin()
    with pytest.raises(ModelError, match="give --precision float32"):
        other.annotate(bulk_jobs.annotator(), job.parts[0])


@pytest.mark.parametrize("is_older", [False, True])
def test_a_job_of_auto_goes_on_with_the_precision_by_name(tmp_path, is_older):
    """Which is what its error advises where another processor, or a newer version, would choose another one."""
    source, out = tmp_path / "texts.txt", tmp_path / "out"
    source.write_text(bulk_jobs.lines(6), encoding="utf-8")
    command = ["annotate", str(source), str(out), "--part-rows", "3", "--processes", "1"]
    assert main(command) == 0
    before = bulk_jobs.contents(out)
    manifest = json_of(out / "manifest.json")
    if is_older:  # the wish was written too, not only what came of it
        manifest["settings"]["precision"] = "auto"
        (out / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (out / "commits" / "part-000001.json").unlink()
    assert main([*command, "--precision", manifest["precision"]]) == 0
    after = bulk_jobs.contents(out)
    if is_older:
        del before["manifest.json"], after["manifest.json"]
    assert after == before


def test_words_are_switched_while_a_job_runs(tmp_path, monkeypatch):
    source, words = tmp_path / "texts.txt", tmp_path / "words.txt"
    source.write_text("阿拉善贺兰草在南京\n张桂梅在南京\n" * 2, encoding="utf-8")
    names = WordVersions(tmp_path / "names")

    def publish(name: str, line: str) -> None:
        words.write_text(line, encoding="utf-8")
        names.publish(words, name)

    def annotate(output: str) -> int:
        lexicon = ["--lexicon-add", str(tmp_path / "names")]
        options = ["--part-rows", "1", "--processes", "1", "--min-score", "0"]
        return main(["annotate", str(source), str(tmp_path / output), *lexicon, *options])

    publish("1.tsv", "阿拉善贺兰草\tGPE\tforce\n")
    assert annotate("undisturbed") == 0
    annotate_parts = local.annotate_parts

    def switched(job, parts, *, n_processes):
        records = annotate_parts(job, parts, n_processes=n_processes)
        yield next(records)
        publish("2.tsv", "阿拉善贺兰草\tPER\tforce\n")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(local, "annotate_parts", switched)
        assert annotate("out") == 130
    assert names.current() == "2.tsv"
    assert annotate("out") == 0  # goes on with the version that it was begun with
    assert bulk_jobs.contents(tmp_path / "out") == bulk_jobs.contents(tmp_path / "undisturbed")
    assert annotate("later") == 0
    for output, version in (("out", "1.tsv"), ("later", "2.tsv")):
        parts = [json_of(path) for path in (tmp_path / output / "commits").glob("part*")]
        assert len(parts) == 4 and all(part["lexicon_versions"] == [version] for part in parts)
        assert json_of(tmp_path / output / "manifest.json")["lexicon_versions"] == [version]
    rows = [(tmp_path / name / "data" / "part-000000.jsonl").read_text(encoding="utf-8") for name in ("out", "later")]
    assert '"label":"GPE"' in rows[0].replace(" ", "") and '"label":"PER"' in rows[1].replace(" ", "")


def test_lines_of_words_and_names_that_are_refused_are_told_once(tmp_path, capfd):
    source, words, names = tmp_path / "two.txt", tmp_path / "words.txt", tmp_path / "names.tsv"
    source.write_text("小米在南京\n张桂梅在南京\n", encoding="utf-8")
    words.write_text("铁\nA\n阿拉善贺兰草\tGPE\n", encoding="utf-8")
    names.write_text("康泽洛韦\tMEDICINE/curated\n无类\n", encoding="utf-8")
    argv = ["annotate", str(source), str(tmp_path / "out"), "--lexicon-add", str(words), "--names", str(names)]
    assert main([*argv, "--part-rows", "1", "--processes", "2"]) == 0
    err = capfd.readouterr().err
    assert err.count(f"cige: {words} (labels): 1 taken, 2 refused\n") == err.count("2 x single character") == 1
    assert err.count(f"cige: {names} (names): 1 taken, 1 refused\n") == err.count("no kind after a tab\n  line 2") == 1
    assert ".py" not in err


def test_a_list_of_names_of_other_kinds_is_another_version(tmp_path, capsys):
    source, names, out = tmp_path / "texts.txt", tmp_path / "names.tsv", tmp_path / "out"
    source.write_text(bulk_jobs.lines(6), encoding="utf-8")
    command = ["annotate", str(source), str(out), "--part-rows", "3", "--processes", "1", "--names", str(names)]
    names.write_text("康泽洛韦\tMEDICINE/curated\n", encoding="utf-8")
    assert main(command) == 0
    manifest = json_of(out / "manifest.json")
    assert json_of(out / "commits" / "part-000000.json")["names"] == manifest["names"]
    (out / "commits" / "part-000001.json").unlink()
    names.write_text("康泽洛韦\tBOOK/curated\n", encoding="utf-8")
    assert main(command) == 2
    assert f"has another list of names (the list of names was {manifest['names']} and is " in capsys.readouterr().err
    del manifest["names"]  # as older versions wrote it
    (out / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert main(command) == 0
