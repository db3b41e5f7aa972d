"""The packages that engines and formats need, checked before anything is read or written."""

from __future__ import annotations

from importlib.util import find_spec

from cige.errors import CigeError

MODULES = {
    "ray": ("ray", "pyarrow", "pandas"),
    "spark": ("pyspark", "pyarrow", "pandas"),
    "documents": ("pyarrow",),
}
"""The modules that the work of an extra imports, some of them only in worker processes."""


def check_installed(what: str, extra: str) -> None:
    """Check that the modules of an extra are installed.

    Args:
        what: what needs them, for the message.
        extra: a key of MODULES.

    Raises:
        CigeError: a module is missing.
    """
    for module in MODULES[extra]:
        try:
            is_there = find_spec(module) is not None
        except (ModuleNotFoundError, ValueError):  # ValueError: None in sys.modules, as some programs block a module
            is_there = False
        if not is_there:
            raise CigeError(f'{what} needs {module}, which is not installed; pip install "cige[{extra}]"')
