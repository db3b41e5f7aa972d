"""web/build.py as a module; by its path, since its name is that of a package for building wheels."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

WEB = Path(__file__).resolve().parents[2] / "web"
_spec = spec_from_file_location("cige_web_build", WEB / "build.py")
assert _spec is not None and _spec.loader is not None
build = module_from_spec(_spec)
_spec.loader.exec_module(build)

import pack_model as pack_model  # noqa: E402  (web/build.py has put its folder into the path)
