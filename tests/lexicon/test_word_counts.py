"""Counting the words of a corpus."""

import itertools
import lzma
from types import SimpleNamespace

import pytest

from cige.errors import LexiconError
from cige.lexicon import word_counts as module
from cige.lexicon.word_counts import WordCounts, count_words, vocabulary_form


def blanks(text: str) -> list[str]:
    """A segmenter for tests: words are parted by blanks, and any function that can be pickled will do."""
    return text.split(" ")


@pytest.fixture
def corpus(tmp_path):
    def write(text: str):
        path = tmp_path / "corpus.txt"
        path.write_text(text, encoding="utf-8", newline="\n")
        return path

    return write


@pytest.mark.parametrize(
    ("word", "form"),
    [
        ("研究", "研究"),
        ("T恤", "t恤"),
        ("Ｔ恤", "t恤"),
        ("3月", "3月"),
        ("café人", "cafe人"),
        ("研\u200b究", "研究"),
        ("𠮷野家", "𠮷野家"),
        *[
            (word, None)
            for word in ("研", "研\u200b", "iPhone", "2020", "，", "研究。", "研 究", "研-究", "", "研" * 65)
        ],
    ],
)
def test_what_a_vocabulary_holds_of_a_word(word, form):
    assert vocabulary_form(word) == form


def test_counts(corpus):
    path = corpus("研究 生活 研究\n\nT恤 ｔ恤 T恤 2020\n  生活\n")
    made = count_words(path, segment=blanks)
    assert made.counts == {"研究": 2, "生活": 2, "t恤": 3}
    assert (made.n_lines, made.n_chars, made.n_bad) == (4, 8 + 0 + 13 + 4, 0)
    assert made.ranked() == ["t恤", "生活", "研究"]  # equally frequent ones in code-point order
    assert made.ranked(min_count=3) == ["t恤"]
    assert made.share(["研究", "t恤", "没有"]) == pytest.approx(5 / 7)
    assert made.notes() == []


def test_bad_lines_are_told(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_bytes("研究\n".encode() + b"\xff\xff\n")
    made = count_words(path, segment=blanks)
    assert (made.counts, made.n_lines, made.n_bad) == ({"研究": 1}, 1, 1)
    assert made.notes() == [r"1 line left out (not UTF-8, or with a NUL): line 2: \xff\xff"]


def test_nothing_but_empty_lines(corpus):
    assert count_words(corpus("\n\n"), segment=blanks) == WordCounts({}, 2, 0, 0, ())
    assert count_words(corpus(""), segment=blanks).share(["研究"]) == 0


def test_jieba_knows_words_in_upper_case(corpus):
    pytest.importorskip("jieba")
    made = count_words(corpus("他买了T恤和Ｔ恤，研究生活。\n"))
    assert made.counts["t恤"] == 2 and "生活" in made.counts


def test_several_processes_count_alike(corpus, monkeypatch):
    monkeypatch.setattr("cige.lexicon.word_counts._BLOCK_CHARS", 40)
    path = corpus("研究 生活 很 充实\n生活 研究\n" * 40)
    here, progress = [], []
    one = count_words(path, segment=blanks, on_progress=here.append)
    two = count_words(path, segment=blanks, n_workers=2, on_progress=progress.append)
    assert one == two and one.counts["研究"] == 80
    assert here == progress == sorted(progress) and len(progress) > 5
    assert progress[-1] == path.stat().st_size


@pytest.mark.parametrize("n_workers", [1, 2])
def test_one_worker_is_this_process(corpus, monkeypatch, n_workers):
    monkeypatch.setattr(
        module, "_count_in_processes", lambda blocks, segment, n_workers: [(["研究"], {"研究": n_workers})]
    )
    made = count_words(corpus("研究 研究 研究\n"), segment=blanks, n_workers=n_workers)
    assert made.counts == {"研究": 3 if n_workers == 1 else 2}


class Pool:
    """Takes the place of a pool of processes; work is done when its result is asked for."""

    def __init__(self, n_workers):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def submit(self, function, *given):
        return SimpleNamespace(result=lambda: function(*given))


@pytest.mark.parametrize("n_workers", [1, 3])
def test_processes_read_ahead_no_more_than_two_blocks_each(monkeypatch, n_workers):
    monkeypatch.setattr(module, "process_pool", Pool)
    n_read = 0

    def blocks():
        nonlocal n_read
        for _ in range(50):
            n_read += 1
            yield ["研究"]

    n_done = 0
    for block, counts in module._count_in_processes(blocks(), blanks, n_workers):
        n_done += 1
        assert block == ["研究"] and counts == {"研究": 1}
        assert n_read - n_done <= 2 * n_workers
    assert n_done == 50


@pytest.mark.parametrize(
    ("sizes", "expected"), [([], []), ([3], [1]), ([3, 3], [2]), ([10, 1], [1, 1]), ([4, 4, 4, 1], [3, 1])]
)
def test_blocks_are_whole_lines_up_to_their_size(monkeypatch, sizes, expected):
    monkeypatch.setattr(module, "_BLOCK_CHARS", 10)
    lines = [(number, "研" * size) for number, size in enumerate(sizes, 1)]
    found = list(module._blocks(lines))
    assert [len(block) for block in found] == expected
    assert [line for block in found for line in block] == [text for _, text in lines]


def test_an_error_in_the_corpus_ends_the_processes(tmp_path):
    path = tmp_path / "corpus.xz"
    path.write_bytes(lzma.compress("研究 生活\n".encode() * 1000)[:-20])
    with pytest.raises(LexiconError, match="damaged or truncated"):
        count_words(path, segment=blanks, n_workers=2)


def test_a_line_of_a_million_characters(corpus):
    longest: list[int] = []

    def segment(text: str) -> list[str]:
        longest.append(len(text))
        return text.split("，")

    made = count_words(corpus("研究生活，" * 200_000), segment=segment)
    assert made.counts == {"研究生活": 200_000}  # cut at punctuation only
    assert max(longest) <= 10_000 and sum(longest) == made.n_chars == 1_000_000
    count_words(corpus("研" * 25_000), segment=segment)
    assert longest[-3:] == [10_000, 10_000, 5_000]


def test_order_of_lines_does_not_matter(corpus):
    lines = ["研究 生活", "生活 充实", "充实 研究 很好"]
    found = [count_words(corpus("\n".join(order)), segment=blanks) for order in itertools.permutations(lines)]
    assert len({tuple(made.ranked()) for made in found}) == 1
