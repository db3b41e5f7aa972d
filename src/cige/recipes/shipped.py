"""The built-in recipes by name: `weibo/flat` is a data set and a system, `pretrain/tiny` a single file.

    tagging.yaml          training settings of all recipes for tagging
      < data/weibo.yaml       settings of the data set
      < systems/flat.yaml     settings of the network; it may extend another system
      < pairs.yaml            settings of this pair: its section weibo/flat

Each file overrides those above it. A system that extends another one comes after that system and its section of
pairs.yaml, so `weibo/flat_head` also has the settings of `weibo/flat` in pairs.yaml.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from cige.errors import RecipeError
from cige.extensions import recipe_kinds
from cige.recipes.yaml_file import Layer, read_layer

FOLDER = Path(__file__).parent
TAGGING, SEARCH = "tagging", "search"  # the kinds of the core
OWN_DATA = "own_data"
"""The recipe for the user's own labelled sentences, which starts from the bundled model."""
LEARN_TYPE = "learn_type"
"""The recipe for types that are learnt from word lists and raw text."""
NAMES, STUDENT, TODAY, TODAY_STUDENT = "names", "names_student", "today", "today_student"
"""The recipes of the research model and of the bundled model: several data sets at once, then raw text labelled by
agreement of such taggers."""
TABLE_6 = "search/table6"
"""The ranges that a search uses by default."""
PAIRS = "pairs.yaml"
"""The settings of pairs; origins of their values begin with this name."""
_DATA, _SYSTEMS = "data", "systems"
_EXTENDS, _ONLY = "extends", "only"  # keys of a system: the system it extends, and its data sets


@dataclass(frozen=True)
class Shipped:
    """A shipped recipe.

    Attributes:
        kind: TAGGING, SEARCH or a kind of an extension, such as pretrain.
        data, system: data set and system of a pair; otherwise "".
        about: a description in one sentence.
    """

    name: str
    kind: str
    data: str
    system: str
    about: str

    @property
    def run_name(self) -> str:
        """The name of a run in results, such as `weibo-flat` or `cpu-tiny`."""
        name = f"{self.data}-{self.system}" if self.data else self.name.rpartition("/")[2]
        return name.replace("_", "-")


@cache
def shipped() -> dict[str, Shipped]:
    """All shipped recipes by name: pairs sorted by data set, then the others."""
    files = {name: _file(_SYSTEMS, name) for name in _stems(_SYSTEMS)}
    systems = {name: (about(file), _read(file).values.get(_ONLY)) for name, file in files.items()}
    recipes = [
        Shipped(f"{data}/{system}", TAGGING, data, system, what)
        for data in _stems(_DATA)
        for system, (what, only) in systems.items()
        if only is None or data in only
    ]
    singles = (LEARN_TYPE, NAMES, STUDENT, TODAY, TODAY_STUDENT, OWN_DATA)
    recipes += [Shipped(name, TAGGING, "", "", about(FOLDER / f"{name}.yaml")) for name in singles]
    for kind in (*recipe_kinds(), SEARCH):
        recipes += [Shipped(f"{kind}/{stem}", kind, "", "", about(_file(kind, stem))) for stem in _stems(kind)]
    return {one.name: one for one in recipes}


def example_of(kind: str) -> str:
    """The name of a recipe of this kind, for messages."""
    return {TAGGING: "weibo/flat", SEARCH: TABLE_6}.get(kind) or recipe_kinds()[kind].example


def matching(pattern: str) -> list[str]:
    """The names of tagging recipes that match a pattern such as `weibo/flat*`. Raises a RecipeError if no recipe
    matches."""
    names = [name for name, one in shipped().items() if one.kind == TAGGING and fnmatchcase(name, pattern)]
    if not names:
        raise RecipeError(f"{pattern}: no recipe has such a name; `cige recipes list` prints them all")
    return names


def recipes_of(given: str) -> list[str]:
    """The recipes of an argument: those that match a pattern, or the argument itself, a name or a file."""
    is_pattern = any(sign in given for sign in "*?[") and not Path(given).exists()
    return matching(given) if is_pattern else [given]


def layers_of(name: str) -> list[Layer]:
    """The layers of a shipped recipe, each of which overrides those before it; `extends` is left in the values."""
    one = shipped()[name]
    if not one.data:
        return [_read(_single(name))]
    layers = [_read(FOLDER / "tagging.yaml"), _read(_file(_DATA, one.data))]
    pairs = _read(FOLDER / PAIRS)
    for system, layer in _chain(one.system):
        own_values = {key: value for key, value in layer.values.items() if key not in (_EXTENDS, _ONLY)}
        layers.append(Layer(own_values, layer.origins))
        pair = f"{one.data}/{system}"
        if pair in pairs.values:
            layers.append(_section(pairs, pair))
    return layers


def no_such_recipe(given: str, *, kind: str | None = None, extended_by: object = None) -> str:
    """The error message for a recipe that is neither shipped nor a file."""
    by = "" if extended_by is None else f" (extended by {extended_by})"
    data, _, system = given.partition("/")
    if data in _stems(_DATA) and system in _stems(_SYSTEMS):
        only = _read(_file(_SYSTEMS, system)).values[_ONLY]
        return f"{given}: no such recipe{by}; {system} is for {', '.join(only)} only"
    names = [name for name, one in shipped().items() if kind in (None, one.kind)]
    wanted = given.removeprefix("recipes/").removesuffix(".yaml").replace("pretraining/", "pretrain/")
    last = wanted.rpartition("/")[2]
    near = [wanted] if wanted in names else [name for name in names if name.rpartition("/")[2] == last]
    near = near or difflib.get_close_matches(wanted, names, n=3, cutoff=0.6)
    hint = f"; did you mean {' or '.join(near[:5])}?" if near else ""
    return f"{given}: no such recipe{by}; expected a YAML file or a name that `cige recipes list` prints{hint}"


def about(path: Path) -> str:
    """The description of a recipe: the first paragraph of the comment at the top of its file, as one line."""
    return opening(path)[0]


def opening(path: Path) -> list[str]:
    """The paragraphs of the comment at the top of a file: a description, the command that runs it, and notes."""
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
    """The files whose opening comments describe a recipe; for a pair, those of the system and of the data set."""
    one = shipped()[name]
    return [_file(_SYSTEMS, one.system), _file(_DATA, one.data)] if one.data else [_single(name)]


def _chain(system: str) -> list[tuple[str, Layer]]:
    """A system and all systems that it extends, starting from the base."""
    layer = _read(_file(_SYSTEMS, system))
    return [*(_chain(layer.values[_EXTENDS]) if _EXTENDS in layer.values else ()), (system, layer)]


@cache
def _stems(folder: str) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in _place(folder).glob("*.yaml")))


def _file(folder: str, stem: str) -> Path:
    return _place(folder) / f"{stem}.yaml"


def _single(name: str) -> Path:
    """The file of a recipe that is no pair."""
    folder, _, stem = name.rpartition("/")
    return _file(folder, stem)


def _place(folder: str) -> Path:
    """Where the files of a folder are, which may be the kind of an extension."""
    kinds = recipe_kinds()
    return kinds[folder].folder if folder in kinds else FOLDER / folder


@cache
def _read(path: Path) -> Layer:
    return read_layer(path, called=path.name if path.parent == FOLDER else f"{path.parent.name}/{path.name}")


def _section(layer: Layer, name: str) -> Layer:
    prefix = f"{name}."
    origins = {key.removeprefix(prefix): where for key, where in layer.origins.items() if key.startswith(prefix)}
    return Layer(layer.values[name], origins)
