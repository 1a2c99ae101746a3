"""`python -m omcli` and the `om` command."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


_INTERRUPTED = 130


def _leave(*_: object) -> None:
    """Ctrl-C while there is nothing yet to be given back."""
    os._exit(_INTERRUPTED)


def _uncaught(kind: type[BaseException], error: BaseException, traceback: "TracebackType | None") -> None:
    """What nobody has put into words; an end that was asked for needs none."""
    _leave_if_asked_to(error)
    from omcli.cli.main import internal_error  # noqa: PLC0415 - it takes a while

    internal_error(kind, error, traceback)


def _unheard(ignored: "sys.UnraisableHookArgs") -> None:
    """What comes where nothing can be raised, as in a callback of Python's own: an end that was asked for may."""
    _leave_if_asked_to(ignored.exc_value)
    sys.__unraisablehook__(ignored)


def _leave_if_asked_to(error: BaseException | None) -> None:
    """Ends the run where a signal asked for that, also where what it raised has come to another error on its way."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            _leave()
        if isinstance(error, SystemExit):
            os._exit(error.code if isinstance(error.code, int) else 0)
        error = error.__cause__ or error.__context__


# First of all, since Ctrl-C may come at once; a handler as soon as it can be had, since what is being compiled or
# made by an import turns an exception into errors of its own.
sys.excepthook = _uncaught
sys.unraisablehook = _unheard

import signal  # noqa: E402

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _leave)

from contextlib import suppress  # noqa: E402
from typing import NoReturn  # noqa: E402

from omcli.cli import main as cli  # noqa: E402


def main() -> NoReturn:
    """Runs `om` and leaves at once: taking apart what goes with the process anyway is a twentieth of a short run."""
    try:
        cli.main()
    except SystemExit as end:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.flush()
        os._exit(end.code if isinstance(end.code, int) else 0)


if __name__ == "__main__":
    main()
