"""Which strings can be words of a lexicon, and the reasons why others cannot."""

from __future__ import annotations

import unicodedata

MAX_WORD_CHARS = 64  # much longer than entries of real word lists; a longer line is prose, or the file is damaged

EMPTY = "empty"
SINGLE = "single character"
TOO_LONG = f"longer than {MAX_WORD_CHARS} characters"
CONTROL = "control character or line separator"
UNENCODABLE = "character that cannot be encoded (U+FFFD or a lone surrogate)"
WHITESPACE = "whitespace inside"
EDGE = "whitespace at the edge"
DUPLICATE = "duplicate"
CONTRADICTION = "listed before with another label or mode"
NOT_UTF8 = "not UTF-8"
WAYS_OUT = {  # what a user can do about lines that were refused for a reason
    SINGLE: "characters are read without a list; to force or block one, give its line that mode",
    TOO_LONG: "shorten it, or separate its columns by tabs",
    CONTROL: "remove it",
    UNENCODABLE: "save the file as UTF-8 from where the character is right",
    WHITESPACE: "add words with spaces as words of your own",
    EDGE: "remove it",
    CONTRADICTION: "the first one holds; remove the line that is wrong",
    NOT_UTF8: "convert the file, for example with iconv -f GB18030 -t UTF-8",
}


def reason_to_refuse(word: str, *, spaces: bool = False) -> str | None:
    """Return why `word` (normalised) cannot be a word, or None if it can; `spaces` allows spaces inside it."""
    if not word or word.isspace():
        return EMPTY
    if len(word) == 1:
        return SINGLE
    if len(word) > MAX_WORD_CHARS:
        return TOO_LONG
    if word.isalnum():  # nearly every word; the characters that are refused below are neither letters nor digits
        return None
    if word != word.strip():
        return EDGE
    if any(unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in word):
        return CONTROL
    if "\ufffd" in word:
        return UNENCODABLE
    if not spaces and any(map(str.isspace, word)):
        return WHITESPACE
    return None
