"""`python -m omcli` and the `om` command."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


_INTERRUPTED = 130


def _leave(*_: object) -> None:
    """Exit at once on Ctrl-C, because there is nothing to release yet."""
    os._exit(_INTERRUPTED)


def _uncaught(kind: type[BaseException], error: BaseException, traceback: "TracebackType | None") -> None:
    """Print an exception that nothing caught, unless a signal caused it."""
    _leave_if_signalled(error)
    from omcli.cli.main import print_error  # noqa: PLC0415 - slow

    print_error(kind, error, traceback)


def _unraisable(ignored: "sys.UnraisableHookArgs") -> None:
    """Print an exception that Python cannot raise, for example in a callback, unless a signal caused it."""
    _leave_if_signalled(ignored.exc_value)
    sys.__unraisablehook__(ignored)


def _leave_if_signalled(error: BaseException | None) -> None:
    """End the run if a signal caused this error, directly or through other errors."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            _leave()
        if isinstance(error, SystemExit):
            os._exit(error.code if isinstance(error.code, int) else 0)
        error = error.__cause__ or error.__context__


# The hooks come first, because Ctrl-C may be pressed at any moment. The signal handler follows, because an exception
# raised while a module is compiled or created turns into other errors.
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
    """Run `om` and exit without Python's cleanup, which would take 5 % of a short run."""
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
