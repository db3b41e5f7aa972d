"""Jobs that are killed, stopped and given again: nothing is lost, nothing is there twice, the bytes are the same."""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import bulk_jobs
import pytest

from cige.bulk import local
from cige.cli import main
from cige.errors import CigeError, ModelError
from cige.runtime import native


@pytest.fixture(scope="module")
def undisturbed(texts, tmp_path_factory):
    """The contents of the annotation of `texts` in parts of 3 rows."""
    output = tmp_path_factory.mktemp("undisturbed") / "out"
    assert bulk_jobs.done(bulk_jobs.plan(texts, output, part_rows=3))["rows"] == 60
    return bulk_jobs.contents(output)


def test_a_job_that_was_killed_before_it_had_a_manifest_can_be_begun(texts, undisturbed, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".manifest.json.x.part").write_text("{")
    bulk_jobs.done(bulk_jobs.plan(texts, tmp_path / "out", part_rows=3))
    assert bulk_jobs.contents(tmp_path / "out") == undisturbed


def test_a_killed_worker_is_replaced(texts, undisturbed, tmp_path):
    job = bulk_jobs.plan(texts, tmp_path / "out", part_rows=3)
    job.begin()
    records = []
    for record in local.annotate_parts(job, job.pending(), n_processes=2):
        records.append(record)
        if len(records) in (1, 9):
            os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)
            (tmp_path / "out" / "data" / ".part-000000.jsonl.x.part").write_text("what it leaves if it was writing")
    assert sorted(record["part"] for record in records) == list(range(20))
    job.finish()
    assert bulk_jobs.contents(tmp_path / "out") == undisturbed
    assert not multiprocessing.active_children()


def test_a_killed_job_goes_on(texts, undisturbed, tmp_path):
    output = tmp_path / "out"
    command = [sys.executable, "-m", "cige.cli", "annotate", str(texts), str(output), "--part-rows", "3"]
    runs = ((1, 2, signal.SIGKILL), (2, 6, signal.SIGKILL), (1, 9, signal.SIGINT))
    for _ in range(5):  # on a busy machine, a job may have ended before it is killed
        said = [killed_at(n, [*command, "--processes", str(k)], output, how) for k, n, how in runs]
        if None not in said:
            break
        shutil.rmtree(output)
    assert said[-1] and "resuming: " in said[-1] and "Run the same command again" in said[-1]
    n_left = 20 - len(list(output.glob("commits/part*")))
    assert n_left > 0
    (output / "data" / ".part-000000.jsonl.x.part").write_text("what a killed process leaves")
    # In compiled code, no text's result depends on the others of its batch; NumPy's last digits do.
    another_batch = [] if native.load() is None else ["--batch-size", "3"]
    finished = subprocess.run([*command, "--processes", "1", *another_batch], capture_output=True, text=True)
    assert finished.returncode == 0 and f"resuming: {20 - n_left} of 20 parts" in finished.stderr
    assert bulk_jobs.contents(output) == undisturbed
    again = subprocess.run([*command, "--processes", "1"], capture_output=True, text=True, check=True)
    assert "all parts were finished already" in again.stdout and bulk_jobs.contents(output) == undisturbed


def killed_at(n_commits, command, output, how):
    """Run a command, and stop it as soon as so many parts are finished, at least one of them by it; what it said, or
    None if it had ended."""
    n_commits = max(n_commits, len(list(output.glob("commits/part*"))) + 1)
    job = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while len(list(output.glob("commits/part*"))) < n_commits and job.poll() is None:
        time.sleep(0.01)
    if job.poll() is None:
        os.killpg(job.pid, how) if how == signal.SIGKILL else os.kill(job.pid, how)
    said = job.communicate()[1]
    if job.returncode == 0:
        return None
    assert job.returncode == (-how if how == signal.SIGKILL else 130), said
    return said


def test_a_part_that_kills_every_process_ends_the_job_and_keeps_the_others(texts, tmp_path, monkeypatch):
    job = bulk_jobs.plan(texts, tmp_path / "out", part_rows=3)
    job.begin()
    monkeypatch.setattr(local, "_work", die)
    with pytest.raises(CigeError, match=r"3 processes died while they read the file, rows 1 to 3 .exit code 7"):
        list(local.annotate_parts(job, job.pending(), n_processes=1))


def die(pipe, job):
    pipe.recv()
    os._exit(7)


def test_the_command_names_the_files_that_changed(tmp_path, capsys):
    folder, output = tmp_path / "texts", tmp_path / "out"
    folder.mkdir()
    for name in "abcd":
        (folder / f"{name}.txt").write_text(bulk_jobs.lines(2), encoding="utf-8")
    bulk_jobs.plan(folder, output).begin()

    def refused() -> str:
        assert main(["annotate", str(folder), str(output)]) == 2
        return capsys.readouterr().err

    (folder / "b.txt").unlink()
    assert "(b.txt is missing)" in refused()
    (folder / "e.txt").write_text("新\n", encoding="utf-8")
    assert "(b.txt is missing, and 1 other file too)" in refused()
    (folder / "a.txt").write_text("新\n", encoding="utf-8")
    assert "(a.txt has other contents, and 2 other files too)" in refused()


def test_the_command_refuses_another_model_lexicon_input_or_folder(texts, tmp_path, capsys):
    source, output = tmp_path / "texts.txt", tmp_path / "out"
    source.write_text(bulk_jobs.lines(6), encoding="utf-8")
    bulk_jobs.plan(source, output).begin()
    words = tmp_path / "words.txt"
    words.write_text("阿拉善贺兰草\n", encoding="utf-8")
    command = ["annotate", str(source), str(output)]

    def refused(*options: str) -> str:
        assert main([*command, *options]) == 2
        return capsys.readouterr().err

    assert "has another lexicon (the lexicon was" in refused("--lexicon-add", str(words))
    assert "(min_score was 0.0, now 0.5)" in refused("--min-score", "0.5") and "now 'parquet'" in refused(
        "--to", "parquet"
    )
    manifest = json.loads((output / "manifest.json").read_text(encoding="utf-8"))
    (output / "manifest.json").write_text(json.dumps(manifest | {"model": "0"}), encoding="utf-8")
    assert "has another model (the model was 0" in refused()
    (output / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    source.write_text(bulk_jobs.lines(7), encoding="utf-8")
    assert "(the input file has other contents)" in refused()
    (output / "manifest.json").unlink()
    (output / "notes.txt").write_text("mine")
    assert "no annotation of cige" in refused()


def test_a_job_without_any_usable_row_fails_and_names_the_reason(tmp_path, capsys):
    """A wrong column must not look like success to a script."""
    source = tmp_path / "texts.jsonl"
    source.write_text('{"body": "李明在北京"}\n' * 3, encoding="utf-8")
    command = ["annotate", str(source), str(tmp_path / "out"), "--processes", "1"]
    assert main(command) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert "all 3 rows were rejected (no 'text' in it; it has 'body')" in said and "rejected" in said
    assert main([*command[:2], str(tmp_path / "out2"), *command[3:], "--text-column", "body"]) == 0


def test_a_worker_whose_main_process_is_gone_ends_silently(texts, tmp_path, capfd):
    job = bulk_jobs.plan(texts, tmp_path / "out", part_rows=3)
    job.begin()
    ours, theirs = multiprocessing.Pipe()
    ours.send(job.parts[0])
    worker = multiprocessing.get_context("spawn").Process(target=local._work, args=(theirs, job))
    worker.start()
    theirs.close()
    ours.close()
    worker.join(60)
    assert worker.exitcode == 0 and "Traceback" not in capfd.readouterr().err


def test_a_worker_whose_lexicon_changed_commits_nothing(texts, tmp_path):
    job = bulk_jobs.plan(texts, tmp_path / "out", part_rows=30)
    job.begin()
    other = replace(job, versions=replace(job.versions, lexicon="0"))
    with pytest.raises(ModelError, match="a worker has another lexicon"):
        other.annotate(bulk_jobs.annotator(), job.parts[0])
    assert len(job.pending()) == 2


def test_a_finished_part_that_was_damaged_is_annotated_again(texts, undisturbed, tmp_path):
    output = tmp_path / "out"
    command = [sys.executable, "-m", "cige.cli", "annotate", str(texts), str(output), "--part-rows", "3"]
    subprocess.run([*command, "--processes", "1"], capture_output=True, check=True)
    missing, cut, changed = (output / "data" / f"part-{k:06d}.jsonl" for k in range(3))
    missing.unlink()
    cut.write_bytes(cut.read_bytes()[:-5])
    changed.write_bytes(changed.read_bytes().replace(b'"LOC"', b'"PER"'))
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert "18 of 20 parts" in said
    assert [name for name, digest in bulk_jobs.contents(output).items() if digest != undisturbed[name]] == [
        "data/part-000002.jsonl"
    ]
    said = subprocess.run([*command, "--verify"], capture_output=True, text=True, check=True).stderr
    assert "19 of 20 parts" in said and bulk_jobs.contents(output) == undisturbed


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"part": 0, "rows"',
        b"\xff\xfe",
        b"[1]",
        b"null",
        b'{"part": 0}',
        b'{"part": 0, "rows": 3, "rejected": 0, "entities": 3, "bytes": "9", "sha256": "0"}',
        b'{"part": 1, "rows": 3, "rejected": 0, "entities": 3, "bytes": 9, "sha256": "0"}',
    ],
)
def test_a_damaged_commit_is_told_with_what_to_do(texts, tmp_path, capsys, content):
    job = bulk_jobs.plan(texts, tmp_path / "out", part_rows=30)
    bulk_jobs.done(job)
    before = bulk_jobs.contents(tmp_path / "out")
    commit = tmp_path / "out" / "commits" / "part-000000.json"
    commit.write_bytes(content)
    command = ["annotate", str(texts), str(tmp_path / "out"), "--part-rows", "30", "--processes", "1"]
    assert main(command) == 2
    said = capsys.readouterr().err
    is_of_another = content.startswith(b'{"part": 1,')
    problem = "this is the record of part 1, not of part 0" if is_of_another else "damaged, and no record of part 0"
    assert f"{commit}: {problem}" in said and "remove this file and run the same command" in said
    commit.unlink()
    assert main(command) == 0
    assert bulk_jobs.contents(tmp_path / "out") == before


def test_a_second_command_touches_nothing_of_the_first(texts, tmp_path, capsys):
    output = tmp_path / "out"
    bulk_jobs.plan(texts, output, part_rows=30).begin()
    (output / "data").mkdir()
    being_written = output / "data" / ".part-000000.jsonl.x.part"
    being_written.write_text("half of a part")
    command = ["annotate", str(texts), str(output), "--part-rows", "30", "--processes", "1"]
    handle = os.open(output, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        before = bulk_jobs.contents(output)
        assert main(command) == 2
        assert "another `cige annotate` is writing there" in capsys.readouterr().err
        assert bulk_jobs.contents(output) == before
    finally:
        os.close(handle)
    assert main(command) == 0 and not being_written.exists()


def test_a_second_command_does_not_begin_a_job_in_an_empty_folder(texts, tmp_path, capsys):
    output = tmp_path / "deep" / "out"
    output.mkdir(parents=True)
    handle = os.open(output, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        assert main(["annotate", str(texts), str(output)]) == 2
        assert not list(output.iterdir())
    finally:
        os.close(handle)


def test_an_empty_input_was_not_finished_already(tmp_path, capsys):
    (tmp_path / "empty.txt").touch()
    assert main(["annotate", str(tmp_path / "empty.txt"), str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "0 rows with 0 entities" in out and "already" not in out


def test_an_output_that_is_a_file_is_refused(texts, tmp_path, capsys):
    (tmp_path / "out").write_text("mine")
    assert main(["annotate", str(texts), str(tmp_path / "out")]) == 2
    assert "out is a file; expected a folder, give a new name" in capsys.readouterr().err
    assert (tmp_path / "out").read_text() == "mine"
