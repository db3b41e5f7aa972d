"""Lexicon and vector folders whose author means harm are refused, or a text gets an error of the project."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import crafted_folders as crafted
import numpy as np
import pytest

from cige.errors import CigeError, LexiconError
from cige.lexicon import base_words
from cige.lexicon.convert_vectors import build_with_vectors, convert_vectors
from cige.lexicon.hash_trie import HashTrie
from cige.lexicon.lexicon import Lexicon
from cige.lexicon.matcher import Matcher, PythonWalk
from cige.lexicon.vectors import VectorTable
from cige.lexicon.word_rules import MAX_WORD_CHARS

WORDS = ["北京", "上海", "南京市"]


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lexicon folder with a trie."""
    monkeypatch.setattr(base_words, "STORED_FROM", 1)
    Lexicon.from_words(WORDS, counts=[3, 2, 1]).save(tmp_path / "lexicon")
    return tmp_path / "lexicon"


def rewrite(folder: Path, name: str, change: Callable[[np.ndarray], np.ndarray]) -> None:
    np.save(folder / name, np.ascontiguousarray(change(np.load(folder / name))))
    crafted.sign(folder)


def test_no_walk_goes_further_than_the_longest_word() -> None:
    """Or a table whose words are all beginnings of one finds millions of them in a long text."""
    whole = Matcher.build(["字" * n for n in range(2, 400)]).trie
    trie = HashTrie(whole.keys, whole.numbers, whole.max_probes, 3, whole.n_words)
    text = "字" * 2000
    found = Matcher(trie).find(text)
    assert len(found) == 1999 + 1998 and (found[:, 1] - found[:, 0]).max() == 3
    assert np.array_equal(found, PythonWalk(trie)(text))


def test_words_of_any_length_are_not_built(tmp_path: Path) -> None:
    folder = tmp_path / "lexicon"
    Lexicon.from_words(WORDS).save(folder)
    for length in (MAX_WORD_CHARS + 1, 200_000):
        words = [*WORDS[:2], "字" * length]
        blob = "".join(f"{word}\n" for word in words).encode()
        (folder / "words.txt").write_bytes(blob)
        ends = np.flatnonzero(np.frombuffer(blob, np.uint8) == 10) + 1
        np.save(folder / "offsets.npy", np.append(0, ends).astype(np.uint32))
        crafted.sign(folder)
        with pytest.raises(LexiconError, match=r"longer than 64|expected 64"):
            Lexicon.load(folder)


def unaligned(array: np.ndarray) -> bytes:
    """An .npy file whose numbers begin at an odd address."""
    header = f"{{'descr': '{array.dtype.str}', 'fortran_order': False, 'shape': {array.shape}, }} \n".encode()
    header = header if len(header) % 2 else b" " + header
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + array.tobytes()


TRIES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "no slots": lambda keys: keys[:0],
    "fewer slots": lambda keys: keys[:-1],
    "a table": lambda keys: keys[None],
    "one number": lambda keys: keys[0].reshape(()),
    "signed": lambda keys: keys.astype(np.int64),
    "other bytes first": lambda keys: keys.astype(keys.dtype.newbyteorder(">")),
    "fractions": lambda keys: keys.astype(np.float64),
    "text": lambda keys: keys.astype("U20"),
}


@pytest.mark.parametrize("name", TRIES)
@pytest.mark.parametrize("file", ["trie_keys.npy", "trie_numbers.npy"])
def test_arrays_of_a_trie(stored: Path, file: str, name: str) -> None:
    rewrite(stored, file, TRIES[name])
    with pytest.raises(LexiconError):
        Lexicon.load(stored)


@pytest.mark.parametrize("file", ["trie_keys.npy", "trie_numbers.npy"])
def test_numbers_of_a_trie_begin_where_numbers_do(stored: Path, file: str) -> None:
    (stored / file).write_bytes(unaligned(np.load(stored / file)))
    crafted.sign(stored)
    with pytest.raises(LexiconError):
        Lexicon.load(stored)


@pytest.mark.parametrize("facts", [{"max_probes": 10**400}, {"max_chars": 65}, {"n_words": 10**400}, {"n_words": -1}])
def test_facts_of_a_trie(stored: Path, facts: dict[str, int]) -> None:
    crafted.sign(stored, **facts)
    with pytest.raises(LexiconError) as told:
        Lexicon.load(stored)
    assert len(str(told.value)) < 500


def test_a_full_table_is_searched_to_its_end_and_no_further(stored: Path) -> None:
    rewrite(stored, "trie_keys.npy", lambda keys: np.full_like(keys, 2**64 - 1))
    crafted.sign(stored, max_probes=len(np.load(stored / "trie_keys.npy")))
    lexicon = Lexicon.load(stored)
    assert len(lexicon.match("北京和上海" * 100)) == 0


def test_numbers_beyond_the_last_word(stored: Path) -> None:
    rewrite(stored, "trie_numbers.npy", lambda numbers: numbers + 7)
    with pytest.raises(LexiconError, match="does not have"):
        Lexicon.load(stored).match("北京")


OFFSETS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "within a character": lambda x: np.append(x[:1] + 1, x[1:]),
    "descending": lambda x: np.append(x[-2::-1], x[-1:]),
    "beyond the end": lambda x: np.append(x[:-1] + 1000, x[-1:]),
    "all at the end": lambda x: np.full_like(x, x[-1]),
    "huge": lambda x: np.append(np.full(len(x) - 1, 2**64 - 1, np.uint64), x[-1:].astype(np.uint64)),
    "bytes": lambda x: x.astype(np.uint8),
}


@pytest.mark.parametrize("name", OFFSETS)
def test_offsets_beside_a_trie(stored: Path, name: str) -> None:
    """They are not read when the folder is opened, but a word is only read where it is one."""
    rewrite(stored, "offsets.npy", OFFSETS[name])
    try:
        lexicon = Lexicon.load(stored)
    except LexiconError:
        return
    for read in (lambda: list(lexicon), lambda: [lexicon.word(number) for number in range(3)]):
        try:
            assert all(isinstance(word, str) for word in read())
        except LexiconError:
            continue


@pytest.mark.parametrize("kind", [np.float64, np.bool_, np.complex64, "U3"])
def test_counts_are_whole_numbers(stored: Path, kind: type) -> None:
    rewrite(stored, "counts.npy", lambda counts: counts.astype(kind))
    with pytest.raises(LexiconError, match="counts"):
        Lexicon.load(stored)


def archive(path: Path) -> None:
    with open(path, "wb") as file:
        np.savez(file, a=np.arange(3))


def pickled(path: Path) -> None:
    np.save(path, np.array([{"a": 1}], object), allow_pickle=True)


def with_header(path: Path, header: str) -> None:
    text = header.encode()
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"\0" * 64)


HEADER = "{{'descr': '<u4', 'fortran_order': False, 'shape': {}}}\n"
FILES: dict[str, Callable[[Path], None]] = {
    "an archive": archive,
    "pickled": pickled,
    "empty": lambda path: path.write_bytes(b"") and None,
    "too long": lambda path: with_header(path, HEADER.format("(4611686018427387904, 4)")),
    "longer than any": lambda path: with_header(path, HEADER.format("(99999999999999999999,)")),
    "negative": lambda path: with_header(path, HEADER.format("(-1,)")),
    "deep": lambda path: with_header(path, "(" * 5000),
    "many signs": lambda path: with_header(path, "-" * 9000 + "1"),
}


@pytest.mark.parametrize("file", ["offsets.npy", "counts.npy", "trie_keys.npy", "trie_numbers.npy"])
@pytest.mark.parametrize("name", FILES)
def test_files_that_are_no_arrays(stored: Path, file: str, name: str) -> None:
    FILES[name](stored / file)
    crafted.sign(stored)
    with pytest.raises(LexiconError):
        Lexicon.load(stored)


def test_words_that_are_missing_and_not_listed(stored: Path) -> None:
    (stored / "words.txt").unlink()
    crafted.sign(stored)
    with pytest.raises(LexiconError):
        Lexicon.load(stored)


@pytest.fixture(scope="module")
def of_vectors(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Folders of vectors: alone, aligned with a lexicon, and in a lexicon."""
    folder = tmp_path_factory.mktemp("vectors")
    text = folder / "vectors.txt"
    text.write_text("3 2\n" + "".join(f"{word} 1 {k}\n" for k, word in enumerate(WORDS)), encoding="utf-8")
    convert_vectors(text, folder / "alone")
    convert_vectors(text, folder / "aligned", lexicon=Lexicon.from_words([*WORDS, "长江"]))
    build_with_vectors(text, folder / "lexicon")
    return SimpleNamespace(**{name: folder / name for name in ("alone", "aligned", "lexicon")})


VECTORS: dict[str, tuple[str, str, Callable[[np.ndarray], np.ndarray]]] = {
    "rows beyond the last": ("alone", "rows.npy", lambda x: x + 1),
    "few rows": ("alone", "rows.npy", lambda x: x[:1]),
    "rows as fractions": ("alone", "rows.npy", lambda x: x.astype(np.float32)),
    "few hashes": ("alone", "hashes.npy", lambda x: x[:1]),
    "hashes as text": ("alone", "hashes.npy", lambda x: x.astype("U20")),
    "vectors of text": ("alone", "vectors.npy", lambda x: x.astype("U5")),
    "whole numbers": ("alone", "vectors.npy", lambda x: x.astype(np.int64)),
    "few vectors": ("alone", "vectors.npy", lambda x: x[:1]),
    "one dimension": ("alone", "vectors.npy", lambda x: x.reshape(-1)),
    "few present": ("aligned", "present.npy", lambda x: x[:1]),
    "present as numbers": ("aligned", "present.npy", lambda x: x.astype(np.int64)),
    "few vectors of a lexicon": ("lexicon", "vectors.npy", lambda x: x[:1]),
    "complex vectors of a lexicon": ("lexicon", "vectors.npy", lambda x: x.astype(np.complex64)),
}


@pytest.mark.parametrize("name", VECTORS)
def test_vectors(of_vectors: SimpleNamespace, tmp_path: Path, name: str) -> None:
    kind, file, change = VECTORS[name]
    folder = Path(shutil.copytree(getattr(of_vectors, kind), tmp_path / kind))
    rewrite(folder, file, change)
    with pytest.raises(LexiconError):
        VectorTable.load(folder)


def test_facts_of_vectors(of_vectors: SimpleNamespace, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(of_vectors.aligned, tmp_path / "aligned"))
    facts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    del facts["lexicon"]
    (folder / "manifest.json").write_text(json.dumps(facts), encoding="utf-8")
    assert len(VectorTable.load(folder)) == 4


@pytest.mark.parametrize(
    "fields",
    [
        {"words": np.arange(3), "vectors": np.zeros((3, 2), np.float32)},
        {"words": np.array("北京\n上海"), "vectors": np.zeros((2, 2), np.int64)},
        {"words": np.array("北京\n上海"), "vectors": np.zeros((2, 2), np.float32), "counts": np.array(["a", "b"])},
        {"words": np.array([["北京"]]), "vectors": np.zeros((1, 2), np.float32)},
    ],
)
def test_an_archive_of_vectors(tmp_path: Path, fields: dict[str, np.ndarray]) -> None:
    np.savez(tmp_path / "vectors.npz", **fields)
    with pytest.raises(CigeError):
        VectorTable.load(tmp_path / "vectors.npz")
