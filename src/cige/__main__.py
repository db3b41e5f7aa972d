"""The program `cige VERB ...`, also as `python -m cige VERB ...`."""

import sys


def main() -> int:
    """Run the command line and return its exit code; Ctrl-C also ends it while it is still being imported."""
    try:
        from cige.cli import main as run

        return run()
    except KeyboardInterrupt:
        from cige.commands.exit_codes import INTERRUPTED

        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
