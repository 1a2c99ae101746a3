"""`python -m omcli` and the `om` command."""

import os
import sys
from contextlib import suppress
from typing import NoReturn

from omcli.cli import diagnostics


def main() -> NoReturn:
    """Runs `om` and leaves at once: taking apart what goes with the process anyway is a twentieth of a short run."""
    try:
        diagnostics.main()
    except SystemExit as end:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.flush()
        os._exit(end.code if isinstance(end.code, int) else 0)


if __name__ == "__main__":
    main()
