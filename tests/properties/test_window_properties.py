"""What holds for the windows of any text."""

import re
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from cige.text.cells import LINE_BREAKS, cells
from cige.text.windows import MAX_WORD, split_windows

TEXTS = st.text(st.sampled_from("天地，。！\n\r\u2028 \t\u3000a”\u0000\ud800😀"), max_size=200) | st.text(max_size=100)
COLUMNS = re.compile(r"(?<![,，、])(?<!\s)(\t|\s\s)")


@given(TEXTS, st.integers(1, 20), st.integers(0, 15))
@example("天，\ta", 2, 0)
def test_windows_of_any_text(text, core, context):
    windows, whole = split_windows(text, whole=2 * core, core=core, context=context), set(cells(text))
    assert "".join(text[w.core_start : w.core_end] for w in windows) == text  # cores partition the text
    assert all(a.core_end == b.core_start for a, b in pairwise(windows))
    for w in windows:
        assert 0 <= w.start <= w.core_start < w.core_end <= w.end <= len(text)
        is_whole = (w.core_start, w.core_end) in whole
        assert w.core_end - w.core_start <= (2 * core if is_whole else core)
        assert w.core_start - w.start <= context // 2 + MAX_WORD and w.end - w.core_end <= context + MAX_WORD
        if not re.search("[0-9A-Za-z]", text):
            assert w.core_start - w.start <= context // 2 and w.end - w.core_end <= context
        cell = text[w.start : w.end].rstrip()
        assert not any(c in LINE_BREAKS for c in cell)  # nothing is read beyond a line break
        # Nor beyond a tab or two spaces, but after a comma, which may be the character before the window.
        assert not COLUMNS.search(text, w.start, w.start + len(cell))


@given(TEXTS, st.integers(1, 20))
def test_context_is_full_where_no_clause_ends(text, context):
    line = "".join(
        c for c in text if not c.isspace() and not (c.isascii() and c.isalnum()) and c not in "。！？!?；;…，、：:,"
    )
    for w in split_windows(line, whole=16, core=8, context=context):
        assert w.start == max(0, w.core_start - context // 2)
        assert w.end == min(len(line), w.core_end + context)


@given(TEXTS)
def test_cells_are_a_partition_and_end_with_the_whitespace_behind_them(text):
    found = list(cells(text))
    assert "".join(text[a:b] for a, b in found) == text
    for (_, end), (start, _) in pairwise(found):
        assert end == start and text[end - 1].isspace() and not text[start].isspace()
