"""Keeps figures of tables, such as 66.16 ± 0.67 and [-7.33, 8.69], on one line where a browser would break them."""

import re

NO_BREAK = "\u00a0"
_INTERVAL = re.compile(r"\[(-?\d[\d.]*), (-?\d[\d.]*)\]")


def unbroken(text: str) -> str:
    """The Markdown `text` with no-break spaces within the figures of its tables; code blocks stay as they are."""
    lines, in_code = [], False
    for line in text.split("\n"):
        in_code ^= line.startswith("```")
        if line.startswith("|") and not in_code:
            line = _INTERVAL.sub(rf"[\1,{NO_BREAK}\2]", line.replace(" ± ", f"{NO_BREAK}±{NO_BREAK}"))
        lines.append(line)
    return "\n".join(lines)
