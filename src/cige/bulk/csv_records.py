"""The ends of the records of CSV, found without making Python objects of them."""

from __future__ import annotations

import numpy as np

_QUOTE, _COMMA, _LINE_FEED, _RETURN = b'",\n\r'
_BEFORE_FIELDS = (_COMMA, _LINE_FEED, _RETURN)


class RecordEnds:
    """Finds the ends of the records of CSV in UTF-8, block by block, where `tables.csv_records` finds them.

    Records end with a line feed, or with a carriage return alone as in files of old Macs. A line end between quotes
    ends no record, and a quote within a field that does not begin with one, as in 15" screen, is a character.

    Attributes:
        in_quotes: whether what was given so far ends within a quoted field.
    """

    def __init__(self) -> None:
        self.in_quotes = False
        self._last = _LINE_FEED  # the byte before the block
        self._is_closed = False  # whether it is a quote that closes a field

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        """int64, the positions in uint8 `codes` of the last bytes of records. A carriage return is not its last byte,
        unless the text ends there: a line feed may follow."""
        ends = np.flatnonzero((codes == _LINE_FEED) | ((codes == _RETURN) & (np.append(codes[1:], 0) != _LINE_FEED)))
        quotes = np.flatnonzero(codes == _QUOTE)
        before = codes[quotes - 1]
        if len(quotes) and quotes[0] == 0:
            before[0] = self._last
        opens = (np.arange(len(quotes)) + self.in_quotes) % 2 == 0  # if all quotes open or close a field
        # Two quotes in a quoted field stand for one; here, the first closes the field and the second opens it again.
        may_open = np.isin(before, _BEFORE_FIELDS) | (before == _QUOTE)
        if len(quotes) and quotes[0] == 0 and self._last == _QUOTE:
            may_open[0] = self._is_closed
        if (opens & ~may_open).any():
            quotes = self._around_fields(quotes, before)
        ends = ends[(np.searchsorted(quotes, ends) + self.in_quotes) % 2 == 0]
        self.in_quotes = bool((self.in_quotes + len(quotes)) % 2)
        if len(codes):
            self._last = int(codes[-1])
            self._is_closed = not self.in_quotes and len(quotes) > 0 and int(quotes[-1]) == len(codes) - 1
        return ends

    def _around_fields(self, quotes: np.ndarray, before: np.ndarray) -> np.ndarray:
        """The quotes that open or close a field, given all of them and the byte before each."""
        around: list[int] = []
        in_quotes, closing = self.in_quotes, -1 if self._is_closed else -2
        for place, code in zip(quotes.tolist(), before.tolist(), strict=True):
            if in_quotes:
                in_quotes, closing = False, place
            elif code in _BEFORE_FIELDS or closing == place - 1:
                in_quotes = True
            else:
                continue
            around.append(place)
        return np.array(around, np.int64)


def has_open_quote(raw: bytes) -> bool:
    """Whether CSV ends within a quoted field."""
    ends = RecordEnds()
    ends(np.frombuffer(raw, np.uint8))
    return ends.in_quotes
