"""Keeps figures of tables, such as 66.16 ± 0.67, [-7.33, 8.69] and the seeds 1, 2, 3, on one line in a browser."""

import re

NO_BREAK = "\u00a0"
_INTERVAL = re.compile(r"\[(-?\d[\d.]*), (-?\d[\d.]*)\]")
_SEEDS = re.compile(r"(?<=\| )\d+(?:, \d+)+(?= \|)")


def unbroken(text: str) -> str:
    """The Markdown `text` with no-break spaces within the figures of its tables; code blocks stay as they are."""
    lines, in_code = [], False
    for line in text.split("\n"):
        in_code ^= line.startswith("```")
        if line.startswith("|") and not in_code:
            line = _INTERVAL.sub(rf"[\1,{NO_BREAK}\2]", line.replace(" ± ", f"{NO_BREAK}±{NO_BREAK}"))
            line = _SEEDS.sub(lambda seeds: seeds[0].replace(" ", NO_BREAK), line)
        lines.append(line)
    return "\n".join(lines)
