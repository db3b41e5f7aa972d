"""Names of labelled sentences as a word list, and `cige data names`, which writes one."""

from __future__ import annotations

import pytest
import tiny

from cige.cli import main
from cige.data import Sentence, Span, write_sentences
from cige.data.names import user_words_of
from cige.errors import DataError
from cige.lexicon.words_file import read_words

TEXT = "ＡＢ在李和李明\n家"
SPANS = (Span(0, 2, "ORG"), Span(3, 4, "PER"), Span(5, 7, "PER"), Span(6, 9, "LOC"))
SENTENCES = [Sentence(TEXT, SPANS), Sentence("李明", (Span(0, 2, "PER"),))]


def test_names_that_can_be_user_words():
    assert user_words_of(SENTENCES) == ["AB", "李明"]
    assert user_words_of(iter(SENTENCES), labels=["ORG"]) == ["AB"]
    assert user_words_of(SENTENCES, min_count=2) == ["李明"]
    assert user_words_of([]) == []


def test_a_label_that_no_entity_has_is_told():
    with pytest.raises(DataError, match=r"no entity is GPE; the labels are LOC, ORG, PER"):
        user_words_of(SENTENCES, labels=["PER", "GPE"])


def test_the_command_writes_a_list_that_reads_back(tmp_path, capsys):
    files, sentences = [], []
    for seed in (1, 2):
        files.append(str(tmp_path / f"{seed}.bmes"))
        sentences.append(tiny.sentences(10, seed=seed))
        write_sentences(files[-1], sentences[-1])
    output = str(tmp_path / "names.txt")
    assert main(["data", "names", *files, "--output", output]) == 0
    assert "names of 20 sentences" in capsys.readouterr().out
    assert read_words(output).words == user_words_of(sentences[0] + sentences[1])
    assert main(["data", "names", *files, "--labels", "PER", "--min-count", "2", "--output", output]) == 0
    of_people = user_words_of(sentences[0] + sentences[1], labels=["PER"], min_count=2)
    assert read_words(output).words == of_people
    assert main(["data", "names", files[0], "--labels", "NO", "--output", output]) == 2
    assert "no entity is NO" in capsys.readouterr().err and read_words(output).words == of_people
