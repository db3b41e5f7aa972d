"""`python -m cige VERB ...`: the same as the program `cige`."""

import sys

from cige.cli import main

if __name__ == "__main__":
    sys.exit(main())
