"""The modules of cige, for tests of their source."""

from pathlib import Path

import cige

SOURCE = Path(cige.__file__).parent
MODULES = sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")
