"""Lines of vectors: the C way and float() agree on numbers, words and problems."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cige.lexicon import vector_files as parse
from cige.lexicon.vector_files import NOT_NUMBERS, native_rows, python_rows
from cige.lexicon.words_file import NO_VECTOR

compiled = pytest.mark.skipif(parse.parse_rows is not native_rows, reason="built without a C compiler")
WAYS = [python_rows, pytest.param(native_rows, marks=compiled)]

LINES = {
    b"\xe5\x8d\x97 1 -2.5 3e-2": (b"\xe5\x8d\x97", None, [1, -2.5, 0.03]),
    b"ab\t+.5\t5.\t-0": (b"ab", None, [0.5, 5, 0]),
    b"ab 1 2 3 \t\r": (b"ab", None, [1, 2, 3]),
    b"iPhone 15 1 2 3": (b"iPhone 15", None, [1, 2, 3]),
    b"  1 2 3": (b" ", None, [1, 2, 3]),
    b"ab 1_0 2 3": (b"ab", None, [10, 2, 3]),
    b"ab 1 2": (b"ab", NO_VECTOR, None),
    b"": (b"", NO_VECTOR, None),
    b"ab 1  3 4": (b"ab 1", NOT_NUMBERS, None),
    b"ab 1 x 3": (b"ab", NOT_NUMBERS, None),
    b"ab 1 2. 3.e": (b"ab", NOT_NUMBERS, None),
    b"ab 1 0x2 3": (b"ab", NOT_NUMBERS, None),
    b"ab 1 - 3": (b"ab", NOT_NUMBERS, None),
    b"ab 1 2\x003 4": (b"ab", NOT_NUMBERS, None),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_form_of_line(way):
    block = b"".join(line + b"\n" for line in LINES)
    numbers = np.full((len(LINES), 3), 7, dtype=np.float32)
    words, problems = way(block, numbers)
    for k, (word, got, (expected_word, problem, expected)) in enumerate(
        zip(words, numbers, LINES.values(), strict=True)
    ):
        assert (word, problems.get(k)) == (expected_word, problem)
        assert expected is None or got.tolist() == np.array(expected, dtype=np.float32).tolist()


float32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
written = st.one_of(
    float32.map(repr),
    float32.map(lambda x: f"{x:.6f}"),
    float32.map(lambda x: f"{x:e}"),
    float32.map(lambda x: f"{x:.25f}"),
    st.tuples(st.integers(-(10**25), 10**25), st.integers(-60, 60)).map(lambda pair: f"{pair[0]}e{pair[1]}"),
    st.from_regex(r"[-+]?[0-9]{0,24}\.?[0-9]{0,24}([eE][-+]?[0-9]{1,4})?", fullmatch=True),
    st.text("0123456789+-.eE_nainfxX", max_size=12),
)


@compiled
@given(st.lists(st.lists(written, min_size=3, max_size=5), max_size=8))
def test_numbers_have_the_value_that_python_gives_them(lines):
    block = "".join(f"词 {' '.join(line)}\n" for line in lines).encode()
    expected, got = zeros(lines), zeros(lines)
    words, problems = python_rows(block, expected)
    assert native_rows(block, got) == (words, problems)
    sound = [k for k in range(len(lines)) if k not in problems]
    assert got[sound].tobytes() == expected[sound].tobytes()


@compiled
@given(st.binary(max_size=60).filter(lambda raw: b"\n" not in raw))
def test_any_bytes(raw):
    block = raw + b"\n"
    numbers = [np.zeros((1, 2), dtype=np.float32) for _ in range(2)]
    assert native_rows(block, numbers[1]) == python_rows(block, numbers[0])


def zeros(lines):
    return np.zeros((len(lines), 4), dtype=np.float32)
