"""`python -m omcli` and the `om` command."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import NoReturn

    from omcli.clients.events import HookCall


_INTERRUPTED = 130
_PLAIN_HOOK = 3
"""Number of words in `om hook CLIENT`."""
_GARBAGE = 50_000
"""Number of new objects after which garbage is collected. With Python's default of 700, collecting takes 5 % of a short
run and frees nothing.
"""


def _leave(*_: object) -> None:
    """Exit at once after Ctrl-C. At the start there is nothing to release yet, and after an uncaught exception nothing
    is left.
    """
    os._exit(_INTERRUPTED)


def _failed_run(kind: type[BaseException], error: BaseException, traceback: "TracebackType | None") -> None:
    """Print an exception that nothing caught, or only end the run if a signal caused it."""
    _leave_on_signal(error)
    from omcli.cli.main import print_error  # noqa: PLC0415 - slow

    print_error(kind, error, traceback)


def _unraisable(ignored: "sys.UnraisableHookArgs") -> None:
    """Print an exception that Python cannot raise, as in a callback, or only end the run if a signal caused it."""
    _leave_on_signal(ignored.exc_value)
    sys.__unraisablehook__(ignored)


def _leave_on_signal(error: BaseException | None) -> None:
    """End the run if a signal caused this error, directly or through other errors."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            _leave()
        if isinstance(error, SystemExit):
            os._exit(error.code if isinstance(error.code, int) else 0)
        error = error.__cause__ or error.__context__


# The hooks come first, because Ctrl-C may be pressed at any moment. The signal handler follows, because an exception
# raised while a module is compiled or created turns into other errors.
sys.excepthook = _failed_run
sys.unraisablehook = _unraisable

import signal  # noqa: E402

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _leave)


def main() -> "NoReturn":
    """Run `om` and exit without Python's cleanup, which would take 5 % of a short run."""
    import gc  # noqa: PLC0415 - not before Ctrl-C is handled

    gc.set_threshold(_GARBAGE)
    if sys.argv[1:2] == ["hook"] and len(sys.argv) == _PLAIN_HOOK and not _is_for_a_person(sys.argv[2]):
        from omcli.cli.hooks import main as hook  # noqa: PLC0415 - a client waits, so nothing else is loaded

        hook(sys.argv[2], _answer)
    if sys.argv[1:] == ["--version"] and _is_version_printed():
        os._exit(0)
    from contextlib import suppress  # noqa: PLC0415 - see above

    from omcli.cli import main as cli  # noqa: PLC0415
    from omcli.cli.console import drop_output  # noqa: PLC0415

    try:
        cli.prepare()
        with cli.kept_code(sys.argv[1:]):
            code = cli.run(sys.argv[1:])
        drop_output()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.flush()
    os._exit(code)


def _is_version_printed() -> bool:
    """Print the version without loading anything. Return False if that fails: then other code, which is slower to load,
    prints the error.
    """
    from omcli import __version__  # noqa: PLC0415

    line = f"om {__version__}\n".encode()
    try:
        return os.write(1, line) == len(line)
    except OSError:
        return False


def _answer(asked: "HookCall") -> str:
    """Return the answer to a client's hook. Only a hook that gets an answer loads the code for it."""
    from omcli.cli.command import Run  # noqa: PLC0415
    from omcli.cli.commands.hook import hook_text  # noqa: PLC0415

    return hook_text(Run(quiet=True), asked)


def _is_for_a_person(word: str) -> bool:
    """Return True if `om hook WORD` is to print help or an error for a person: if the word is an option, or stdin is a
    terminal or missing.
    """
    return word.startswith("-") or sys.stdin is None or sys.stdin.isatty()


if __name__ == "__main__":
    main()
