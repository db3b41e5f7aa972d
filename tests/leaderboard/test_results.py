"""Files of results: written, read and merged, and refused where they are no results."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import board_results
import pytest

from cige.errors import CigeError
from cige.leaderboard.results import FORMAT, merge, read_result_file, read_results, write_result_file


def test_a_result_comes_back_as_it_was_written(tmp_path: Path) -> None:
    result = board_results.result(seed=2)
    path = write_result_file(tmp_path, result)
    assert path == tmp_path / "weibo" / "flat-2.json"
    assert read_result_file(path) == result
    assert read_results(tmp_path) == [result]
    assert read_results(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", f"not a result of format {FORMAT}"),
        ({"format": 2}, f"not a result of format {FORMAT}"),
        ({"colour": 1}, "differs in colour"),
        ({"dev_f1": "high"}, 'dev_f1 is "high", expected float'),
        ({"dev_f1": True}, "dev_f1 is true, expected float"),
        ({"seed": 1.5}, "seed is 1.5, expected int"),
        ({"counts": [[1, 2]]}, "counts is"),
        ({"counts": [[1, 2, -1]]}, "counts is"),
        ({"counts": [["\u2028"]]}, 'counts is [["\\u2028"]], expected list'),  # in one line
        *(({"repeated": places}, "repeated is not a list of sentences") for places in ([7, 0], [0, 0], [-1], [200])),
        ({"counts": [[1, 1, 2]]}, "counts is"),
        ({"counts": [[10**30, 10**30, 1]]}, "counts is"),
        ({"test_f1": 0.95}, "test_f1 is 0.9500, but its counts give 0."),
        ({"test_f1": None}, "but its counts give 0."),
        ({"test_f1": None, "dev_f1": 0.0, "counts": [], "repeated": []}, "counts is empty, expected the numbers"),
        ({"work": 0}, "work is 0, expected more than 0"),
        ({"dev_f1": 66.4}, "dev_f1 is 66.4, expected a share from 0 to 1"),
        ({"seconds": -1.0}, "seconds is -1.0, expected more than 0"),
        ({"sentences_per_second": {"1": 100.0}}, "batch sizes 1, expected 1 and 16"),
        ({"sentences_per_second": {}}, "batch sizes none, expected 1 and 16"),
        ({"sentences_per_second": {"1": 100.0, "16": 0.0}}, "sentences_per_second is 0.0"),
        ({"user_words": {"none": None}}, "user_words is"),
        ({"user_words": {"none": 66.4}}, "user_words has 66.4 for 'none', expected a share from 0 to 1"),
        ({"data": ".."}, "cannot be the name of a cell"),
        ({"data": "../weibo"}, "cannot be the name of a cell"),
    ],
)
def test_what_is_no_result_is_refused(tmp_path: Path, change: object, message: str) -> None:
    values = {"format": FORMAT, **asdict(board_results.result())}
    text = change if isinstance(change, str) else json.dumps(values | change)
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CigeError) as raised:
        read_result_file(path)
    assert message in str(raised.value) and "x.json" in str(raised.value)


def test_a_data_set_may_have_a_name_with_a_hyphen(tmp_path: Path) -> None:
    result = board_results.result(data="my-data.v2")
    write_result_file(tmp_path, result)
    assert read_results(tmp_path) == [result]


def test_sentences_that_are_in_the_training_data_are_left_out_of_the_score_of_new_ones() -> None:
    result = board_results.result(counts=[[2, 2, 2], [2, 1, 1], [1, 0, 0], [0, 1, 0]], repeated=[0, 3])
    assert result.new_f1 == pytest.approx(2 * 1 / (3 + 1))
    assert board_results.result(counts=[[2, 2, 2]], repeated=[0]).new_f1 == 0.0
    assert board_results.result(counts=[[2, 2, 1]], repeated=[]).new_f1 == 0.5


def test_hidden_files_are_no_results(tmp_path: Path) -> None:
    path = write_result_file(tmp_path, board_results.result())
    path.with_name("._flat-1.json").write_bytes(b"\0")  # as macOS writes on other disks
    assert read_results(tmp_path) == [board_results.result()]


@pytest.mark.parametrize("text", ['{"format": 0}', '{"format": 2, "f1": 1}', "{"])
def test_a_file_that_is_no_result_is_skipped_and_kept_beside_the_new_one(tmp_path: Path, text: str) -> None:
    one, two = board_results.result(seed=1), board_results.result(seed=2)
    write_result_file(tmp_path, two)
    path = tmp_path / one.path
    path.write_text(text, encoding="utf-8")
    problems: list[CigeError] = []
    assert read_results(tmp_path, on_problem=problems.append) == [two]
    assert [str(problem).partition(": ")[0] for problem in problems] == [str(path)]
    assert "keeps this file with .old behind its name" in str(problems[0])
    write_result_file(tmp_path, one)
    write_result_file(tmp_path, one)  # a result is replaced
    assert read_results(tmp_path) == [one, two]
    assert path.with_name("flat-1.json.old").read_text(encoding="utf-8") == text
    assert len(list(path.parent.iterdir())) == 3


def test_each_file_that_is_no_result_is_kept(tmp_path: Path) -> None:
    one = board_results.result(seed=1)
    path = tmp_path / one.path
    for text in ("1", "2"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        write_result_file(tmp_path, one)
    assert path.with_name("flat-1.json.old").read_text(encoding="utf-8") == "1"
    assert path.with_name("flat-1.json.old.2").read_text(encoding="utf-8") == "2"


def test_a_folder_or_a_link_that_leads_nowhere_is_no_result(tmp_path: Path) -> None:
    one, two = board_results.result(seed=1), board_results.result(seed=2)
    (tmp_path / one.path).mkdir(parents=True)
    (tmp_path / two.path).symlink_to("nowhere")
    (tmp_path / "weibo" / "notes.json").mkdir()
    problems: list[CigeError] = []
    assert read_results(tmp_path, on_problem=problems.append) == []
    assert ["cannot be read" in str(problem) for problem in problems] == [True] * 3
    assert "if weibo/flat-1 is a cell" in str(problems[0]) and "no cell has a file of this name" in str(problems[2])
    for result in (one, two):
        write_result_file(tmp_path, result)
    assert read_results(tmp_path, on_problem=problems.append) == [one, two]


def test_files_that_are_no_results_are_skipped_when_folders_are_merged(tmp_path: Path) -> None:
    here, other = tmp_path / "here", tmp_path / "other"
    one, two = board_results.result(seed=1), board_results.result(seed=2)
    for folder, result, bad in ((here, two, one), (other, one, two)):
        write_result_file(folder, result)
        (folder / bad.path).write_text("{", encoding="utf-8")
    with pytest.raises(CigeError, match="not JSON"):
        merge([other], here)
    problems: list[CigeError] = []
    assert merge([other], here, on_problem=problems.append) == [here / one.path]
    assert len(problems) == 2 and read_results(here) == [one, two]
    assert (here / "weibo" / "flat-1.json.old").read_text(encoding="utf-8") == "{"


def test_a_result_at_the_place_of_another_is_refused(tmp_path: Path) -> None:
    path = write_result_file(tmp_path, board_results.result(seed=1))
    path.rename(misplaced := path.with_name("flat-3.json"))
    with pytest.raises(CigeError, match=r"flat-3.json: the result of another cell"):
        read_results(tmp_path)
    write_result_file(tmp_path, board_results.result(seed=3))
    assert read_result_file(misplaced.with_name("flat-3.json.old")) == board_results.result(seed=1)


def test_the_folders_of_several_machines_are_merged(tmp_path: Path) -> None:
    here, one, two = tmp_path / "here", tmp_path / "one", tmp_path / "two"
    write_result_file(here, board_results.result(seed=1))
    write_result_file(one, board_results.result(seed=1))  # the same cell with the same scores
    write_result_file(one, board_results.result(seed=2))
    write_result_file(two, board_results.result(seed=3, system="dcsan"))
    assert sorted(path.name for path in merge([one, two], here)) == ["dcsan-3.json", "flat-2.json"]
    assert len(read_results(here)) == 3
    assert merge([one, two], here) == []


def test_two_scores_of_one_cell_are_not_merged(tmp_path: Path) -> None:
    here, other = tmp_path / "here", tmp_path / "other"
    first = board_results.result(seed=1)
    write_result_file(here, first)
    write_result_file(other, board_results.result(seed=2))
    write_result_file(other, replace(first, dev_f1=0.1))
    with pytest.raises(CigeError, match="for the same cell"):
        merge([other], here)
    assert len(read_results(here)) == 1  # nothing was copied
    with pytest.raises(CigeError, match="no result"):
        merge([tmp_path / "nowhere"], here)
