"""`python -m omcli` and the `om` command."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


_INTERRUPTED = 130


def _leave(*_: object) -> None:
    """Exit on Ctrl-C at once, before there is anything to release."""
    os._exit(_INTERRUPTED)


def _uncaught(kind: type[BaseException], error: BaseException, traceback: "TracebackType | None") -> None:
    """Print an error that nothing caught, unless it was asked for by a signal."""
    _leave_if_signalled(error)
    from omcli.cli.main import print_error  # noqa: PLC0415 - slow

    print_error(kind, error, traceback)


def _unraisable(ignored: "sys.UnraisableHookArgs") -> None:
    """Print an error that cannot be raised, as in a callback of Python's, unless it was asked for by a signal."""
    _leave_if_signalled(ignored.exc_value)
    sys.__unraisablehook__(ignored)


def _leave_if_signalled(error: BaseException | None) -> None:
    """End the run if a signal asked for it, even if that has turned into another error on its way."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            _leave()
        if isinstance(error, SystemExit):
            os._exit(error.code if isinstance(error.code, int) else 0)
        error = error.__cause__ or error.__context__


# Before anything else, since Ctrl-C may come at any moment; then a handler, since an exception raised while a module
# is compiled or created turns into other errors.
sys.excepthook = _uncaught
sys.unraisablehook = _unraisable

import signal  # noqa: E402

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _leave)

from contextlib import suppress  # noqa: E402
from typing import NoReturn  # noqa: E402

from omcli.cli import main as cli  # noqa: E402
from omcli.cli.console import drop_output  # noqa: E402


def main() -> NoReturn:
    """Run `om` and exit without Python's cleanup, which takes a twentieth of a short run."""
    try:
        cli.prepare()
        code = cli.run(sys.argv[1:])
        drop_output()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
