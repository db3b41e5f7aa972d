"""Save the state of a selection, so that an interrupted selection can be resumed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from cige.folders.atomic import atomic_file
from cige.folders.checked_settings import fits
from cige.json_text import to_json
from cige.suggest.pool import Candidate, Pool
from cige.suggest.selecting import Selector

_ENTRY = (float, int, str, int, int, list[list[float]])  # of a line: worth, tie, and the fields of a Candidate


@dataclass(frozen=True)
class KeptReading:
    """The file in which the state of a selection is saved, in the folder of its output.

    Attributes:
        path: the path of the file, which is written completely or not at all.
        fingerprint: hash of everything the selection depends on; the state of another selection is not used.
    """

    path: Path
    fingerprint: str

    def keep(self, selector: Selector) -> None:
        """Save the position of a selector and its candidates."""
        counts = {"fingerprint": self.fingerprint, "n_read": selector.n_read, "n_fitting": selector.n_fitting}
        entries = ([worth, tie, *c.to_list()] for worth, tie, c in selector.pool.entries())
        with atomic_file(self.path) as aside, aside.open("w", encoding="utf-8") as file:
            file.write(to_json(counts) + "\n")
            file.writelines(to_json(entry, ensure_ascii=True) + "\n" for entry in entries)

    def take_up(self, selector: Selector) -> bool:
        """Restore the saved state in a new selector; returns False if there is no state of this selection."""
        try:
            counts, *entries = map(json.loads, self.path.read_text(encoding="utf-8").splitlines())
            n_read, n_fitting = counts["n_read"], counts["n_fitting"]
            if counts["fingerprint"] != self.fingerprint or not fits([n_read, n_fitting], list[int]) or n_read < 0:
                return False
            if not all(len(entry) == len(_ENTRY) and all(map(fits, entry, _ENTRY)) for entry in entries):
                return False
            pool = [(worth, tie, Candidate.from_list(values)) for worth, tie, *values in entries]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):  # missing, or not such a file
            return False
        selector.pool = Pool(selector.settings.pool_size, pool)
        selector.n_read, selector.n_fitting = n_read, n_fitting
        return True

    def drop(self) -> None:
        """Delete the file after the output was written."""
        self.path.unlink(missing_ok=True)
