"""Folders of versions: publishing, switching, and what is refused."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from cige.cli import main
from cige.errors import LexiconError
from cige.lexicon.word_versions import WordVersions, version_of, word_file


def words(tmp_path, *lines: str) -> str:
    path = tmp_path / "words.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def test_versions_are_kept_and_one_is_current(tmp_path):
    versions = WordVersions(tmp_path / "names")
    versions.publish(words(tmp_path, "阿拉善贺兰草"), "1.txt")
    versions.publish(words(tmp_path, "张桂梅"), "2.txt")
    assert versions.names() == ["1.txt", "2.txt"] and versions.current() == "2.txt"
    assert versions.path("1.txt").read_text(encoding="utf-8") == "阿拉善贺兰草\n"
    versions.use("1.txt")
    assert versions.current() == "1.txt"
    assert version_of(versions.path("2.txt")) == "2.txt" and version_of(tmp_path / "words.txt") is None


def test_what_is_refused_changes_nothing(tmp_path):
    versions = WordVersions(tmp_path / "names")
    with pytest.raises(LexiconError, match="cige lexicon publish"):
        versions.current()
    versions.publish(words(tmp_path, "张桂梅"), "1.txt")
    versions.publish(words(tmp_path, "张桂梅"), "1.txt")  # the same words again
    with pytest.raises(LexiconError, match="with other words"):
        versions.publish(words(tmp_path, "阿拉善贺兰草"), "1.txt")
    with pytest.raises(LexiconError, match="contains no usable words"):
        versions.publish(words(tmp_path, "# nothing"), "2.txt")
    for name in ("../1.txt", ".1", "", "a/b"):
        with pytest.raises(LexiconError, match="expected the name of a file"):
            versions.publish(words(tmp_path, "张桂梅"), name)
    for name in ("2.txt", "../current"):
        with pytest.raises(LexiconError, match=r"there are 1\.txt"):
            versions.use(name)
    assert versions.names() == ["1.txt"] and versions.current() == "1.txt"


def test_an_emptied_version_is_refused_and_may_be_published_again(tmp_path):
    versions = WordVersions(tmp_path / "names")
    versions.publish(words(tmp_path, "张桂梅"), "1.txt")
    versions.publish(words(tmp_path, "贺兰草"), "2.txt")
    versions.path("2.txt").write_bytes(b"")
    for asked in (lambda: word_file(versions.folder), lambda: versions.use("2.txt")):
        with pytest.raises(LexiconError, match=r"2\.txt: emptied since it was published; publish it again"):
            asked()
    versions.publish(words(tmp_path, "贺兰草"), "2.txt")
    assert Path(word_file(versions.folder)).read_text(encoding="utf-8").split() == ["贺兰草"]


def test_a_name_that_an_editor_wrote(tmp_path):
    """Notepad begins files with a byte order mark and ends lines with CRLF."""
    versions = WordVersions(tmp_path / "names")
    versions.publish(words(tmp_path, "张桂梅"), "1.txt")
    (tmp_path / "names/current").write_bytes(b"\xef\xbb\xbf1.txt\r\n")
    assert versions.current() == "1.txt"


@pytest.mark.parametrize("content", [b"1" * 300, b"1" * 100_000, b"", b"1.txt\0", b"..", b"1.txt\n2.txt", b"\xff"])
def test_a_damaged_name_of_the_current_version_is_refused_in_one_line(tmp_path, content):
    versions = WordVersions(tmp_path / "names")
    versions.publish(words(tmp_path, "张桂梅"), "1.txt")
    (tmp_path / "names/current").write_bytes(content)
    with pytest.raises(LexiconError, match=r"there are 1\.txt|a folder made by") as refused:
        versions.current()
    assert len(str(refused.value)) < 1_000


def test_a_device_or_pipe_in_place_of_the_name_is_not_read(tmp_path):
    versions = WordVersions(tmp_path / "names")
    versions.publish(words(tmp_path, "张桂梅"), "1.txt")
    current = tmp_path / "names/current"
    current.unlink()
    os.mkfifo(current)  # a reader would wait until something is written to it
    with pytest.raises(LexiconError, match="expected a file with the name of a version"):
        versions.current()
    current.unlink()
    current.symlink_to("/dev/zero")
    with pytest.raises(LexiconError, match="expected a file with the name of a version"):
        versions.current()


def test_a_name_that_is_too_long_for_a_file_is_refused(tmp_path):
    versions = WordVersions(tmp_path / "names")
    with pytest.raises(LexiconError, match="at most 200 bytes"):
        versions.publish(words(tmp_path, "张桂梅"), 100 * "名")
    assert not (tmp_path / "names").exists()


def test_a_reader_sees_one_version_or_the_other(tmp_path):
    versions = WordVersions(tmp_path / "names")
    for name, word in (("1.txt", "张桂梅"), ("2.txt", "阿拉善贺兰草")):
        versions.publish(words(tmp_path, word), name)
    switching = threading.Thread(target=lambda: [versions.use(f"{1 + k % 2}.txt") for k in range(100)])
    switching.start()
    seen = set()
    while switching.is_alive():
        seen.add(versions.current())
    switching.join()
    assert seen <= {"1.txt", "2.txt"} and versions.current() == "2.txt"


def test_every_command_takes_a_folder_of_versions(tmp_path, capsys):
    versions = WordVersions(tmp_path / "names")
    versions.publish(words(tmp_path, "江大桥"), "1.txt")
    versions.publish(words(tmp_path, "市长江"), "2.txt")
    assert word_file(tmp_path / "names") == str(versions.path("2.txt"))
    assert word_file(tmp_path / "words.txt") == str(tmp_path / "words.txt")
    (tmp_path / "lex.txt").write_text("南京\n", encoding="utf-8")
    argv = ["南京市长江大桥", "--lexicon-add", str(tmp_path / "names")]
    assert main(["lexicon", "match", *argv, "--lexicon", str(tmp_path / "lex.txt")]) == 0
    assert capsys.readouterr().out == "0-2\t南京\n2-5\t市长江*\n"
    assert main(["predict", *argv, "--words"]) == 0
    assert "市长江" in capsys.readouterr().out
    for verb in (["predict", "南京"], ["serve"]):
        assert main([*verb, "--lexicon-add", str(tmp_path)]) == 2
        assert "expected a file of words, or a folder made by `cige lexicon publish`" in capsys.readouterr().err


def test_the_commands(tmp_path, capsys):
    folder, file = str(tmp_path / "names"), words(tmp_path, "张桂梅")
    assert main(["lexicon", "publish", file, folder]) == 0
    assert main(["lexicon", "publish", words(tmp_path, "阿拉善贺兰草"), folder, "--name", "2.txt"]) == 0
    assert main(["lexicon", "use", folder, "words.txt"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{folder}: words.txt is current"
    assert main(["lexicon", "publish", words(tmp_path, "贺兰沙葱", "铁"), folder, "--name", "4.txt"]) == 0
    out, err = capsys.readouterr()
    assert out == f"{folder}: 4.txt is current\n"
    assert err.startswith(
        f"cige: {tmp_path}/words.txt (list): 1 taken, 1 refused\n  1 x single character (characters are"
    )
    assert main(["lexicon", "publish", words(tmp_path, "铁"), folder, "--name", "5.txt"]) == 2
    assert "nothing was published" in (err := capsys.readouterr().err) and "line 1: '铁': single character" in err
    assert main(["lexicon", "use", folder, "3.txt"]) == 2
    assert "there are 2.txt, 4.txt, words.txt" in capsys.readouterr().err
