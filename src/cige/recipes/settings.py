"""Settings: the nested settings of a recipe, as YAML has them."""

from __future__ import annotations

from typing import Any, TypeAlias

Settings: TypeAlias = dict[str, Any]
"""Values, or further settings in a section. Reading a model needs no YAML, so this is apart from what reads files."""
