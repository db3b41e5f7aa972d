"""The recipes that ship, by name: `weibo/flat` is a data set and a system, `pretrain/tiny` a file of its own.

    tagging.yaml          how every recipe of tagging is trained
      < data/weibo.yaml       what the data set needs, whatever the system
      < systems/flat.yaml     the network, whatever the data set; it may extend another system
      < pairs.yaml            what the two need together: its section weibo/flat

Each file has the last word over those above it. A system that extends another comes after that one and its section of
pairs.yaml, so `weibo/flat_head` has the exceptions of `weibo/flat` too.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from cige.errors import RecipeError
from cige.recipes.yaml_file import Layer, read_layer

FOLDER = Path(__file__).parent
TAGGING, PRETRAIN, FINETUNE, SEARCH = "tagging", "pretrain", "finetune", "search"
OWN_DATA = "own_data"
"""The recipe for labelled sentences of one's own: on top of the bundled model."""
TABLE_6 = "search/table6"
"""The ranges that a search tries where none are given."""
EXAMPLES = {TAGGING: "weibo/flat", PRETRAIN: "pretrain/tiny", FINETUNE: "finetune/tnews", SEARCH: TABLE_6}
"""One name of each kind, for messages."""
PAIRS = "pairs.yaml"
"""The exceptions of pairs; origins of their values begin with it."""
_DATA, _SYSTEMS = "data", "systems"
_EXTENDS, _ONLY = "extends", "only"  # what a system says of other systems and of data sets


@dataclass(frozen=True)
class Shipped:
    """What a name stands for.

    Attributes:
        name: on the command line.
        kind: TAGGING, PRETRAIN, FINETUNE or SEARCH.
        data, system: of a pair; "" otherwise.
        about: what it is, in a sentence.
    """

    name: str
    kind: str
    data: str
    system: str
    about: str

    @property
    def run_name(self) -> str:
        """What a run is called in results: `weibo-flat`, `cpu-tiny`."""
        own = f"{self.data}-{self.system}" if self.data else self.name.rpartition("/")[2]
        return own.replace("_", "-")


@cache
def shipped() -> dict[str, Shipped]:
    """Every recipe that ships, by name: pairs by data set, then the others."""
    systems = {name: (about(_file(_SYSTEMS, name)), _chain(name)[-1].values.get(_ONLY)) for name in _stems(_SYSTEMS)}
    found = [
        Shipped(f"{data}/{system}", TAGGING, data, system, what)
        for data in _stems(_DATA)
        for system, (what, only) in systems.items()
        if only is None or data in only
    ]
    found.append(Shipped(OWN_DATA, TAGGING, "", "", about(FOLDER / f"{OWN_DATA}.yaml")))
    for kind in (PRETRAIN, FINETUNE, SEARCH):
        found += [Shipped(f"{kind}/{stem}", kind, "", "", about(_file(kind, stem))) for stem in _stems(kind)]
    return {one.name: one for one in found}


def matching(pattern: str) -> list[str]:
    """Names of recipes of tagging that a pattern such as `weibo/flat*` stands for.

    Raises:
        RecipeError: there is none.
    """
    names = [name for name, one in shipped().items() if one.kind == TAGGING and fnmatchcase(name, pattern)]
    if not names:
        raise RecipeError(f"{pattern}: no recipe has such a name; `cige recipes list` prints them all")
    return names


def layers_of(name: str) -> list[Layer]:
    """The layers of a recipe that ships, each to go over those before it; what one `extends` is left in its values."""
    one = shipped()[name]
    if not one.data:
        return [_read(FOLDER / f"{name}.yaml")]
    layers = [_read(FOLDER / "tagging.yaml"), _read(_file(_DATA, one.data))]
    pairs = _read(FOLDER / PAIRS)
    for system, layer in zip(_ancestry(one.system), _chain(one.system), strict=True):
        layers.append(_without(layer, _EXTENDS, _ONLY))
        pair = f"{one.data}/{system}"
        if pair in pairs.values:
            layers.append(_section(pairs, pair))
    return layers


def no_such_recipe(given: str, *, kind: str | None = None, extended_by: object = None) -> str:
    """What to say of a recipe that is neither shipped nor a file."""
    by = "" if extended_by is None else f" (extended by {extended_by})"
    data, _, system = given.partition("/")
    if data in _stems(_DATA) and system in _stems(_SYSTEMS):
        only = _chain(system)[-1].values[_ONLY]
        return f"{given}: no such recipe{by}; {system} is for {', '.join(only)} alone"
    names = [name for name, one in shipped().items() if kind in (None, one.kind)]
    wanted = given.removeprefix("recipes/").removesuffix(".yaml").replace("pretraining/", "pretrain/")
    last = wanted.rpartition("/")[2]
    near = [wanted] if wanted in names else [name for name in names if name.rpartition("/")[2] == last]
    near = near or difflib.get_close_matches(wanted, names, n=3, cutoff=0.6)
    hint = f"; did you mean {' or '.join(near[:5])}?" if near else ""
    return f"{given}: no such recipe{by}; expected a YAML file or a name that `cige recipes list` prints{hint}"


def about(path: Path) -> str:
    """What a recipe is: the first paragraph of the comment that its file opens with, as one line."""
    return opening(path)[0]


def opening(path: Path) -> list[str]:
    """The paragraphs of the comment that a file opens with: what it is, the command that runs it, and what else."""
    paragraphs: list[list[str]] = [[]]
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        words = line.removeprefix("#").strip()
        if words:
            paragraphs[-1].append(words)
        else:
            paragraphs.append([])
    return [" ".join(lines) for lines in paragraphs]


def files_of(name: str) -> list[Path]:
    """The files whose opening comments say what a recipe is: of a pair, those of the system and of the data set."""
    one = shipped()[name]
    return [_file(_SYSTEMS, one.system), _file(_DATA, one.data)] if one.data else [FOLDER / f"{name}.yaml"]


def _ancestry(system: str) -> list[str]:
    """A system and those it extends, the first of all first."""
    names = [system]
    while _EXTENDS in (values := _read(_file(_SYSTEMS, names[0])).values):
        names.insert(0, values[_EXTENDS])
    return names


def _chain(system: str) -> list[Layer]:
    return [_read(_file(_SYSTEMS, name)) for name in _ancestry(system)]


@cache
def _stems(folder: str) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (FOLDER / folder).glob("*.yaml")))


def _file(folder: str, stem: str) -> Path:
    return FOLDER / folder / f"{stem}.yaml"


@cache
def _read(path: Path) -> Layer:
    return read_layer(path, called=path.relative_to(FOLDER).as_posix())


def _without(layer: Layer, *names: str) -> Layer:
    return Layer({k: v for k, v in layer.values.items() if k not in names}, layer.origins)


def _section(layer: Layer, name: str) -> Layer:
    prefix = f"{name}."
    origins = {key.removeprefix(prefix): where for key, where in layer.origins.items() if key.startswith(prefix)}
    return Layer(layer.values[name], origins)
