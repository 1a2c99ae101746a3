"""A program in place of a model: the prompt as text on its stdin, the reply on its stdout."""

from __future__ import annotations

import os
import selectors
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import IO, Self

from omcli.base.errors import BadConfiguration, ProviderFailed, Unreachable, Unusable
from omcli.base.record import record
from omcli.llm.model import EndReason, Prompt, Reply
from omcli.providers.failures import as_one_line
from omcli.providers.wire import whole_text

_MOST = 8_000_000
"""Largest reply, in bytes; a program that writes more is assumed not to end."""
_KEPT_OF_STDERR = 4_000
_CHUNK = 65_536
_GUARD = 'read -r group || exit; read -r rest; kill -9 "-$group"'
"""Reads a process group from its stdin, and kills it when om's end of the pipe closes."""


@record
class Command:
    """A program started for every prompt, without a shell, in its own process group."""

    arguments: tuple[str, ...]
    seconds: float
    """Timeout, after which the whole group is killed."""

    @property
    def name(self) -> str:
        """`command`."""
        return "command"

    @property
    def model(self) -> str:
        """The program's name, without its arguments, which may hold a key."""
        return self.arguments[0].rpartition("/")[2]

    @property
    def takes_images(self) -> bool:
        """False, since the prompt is passed as text."""
        return False

    def ask(self, prompt: Prompt) -> Reply:
        """Return the program's output. Raise Unreachable, Unusable or BadConfiguration on failure."""
        with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
            # A file, because writing to a pipe fails if the program does not read all of it.
            stdin.write(whole_text(prompt).encode(errors="replace"))
            stdin.seek(0)
            code, output = self._run(stdin, stderr)
            if code:
                raise self._failure(code, _last_line(stderr))
        text = output.decode(errors="replace").strip()
        if not text:
            raise Unusable(f"{self.model} ended without a reply", hint="its stdout is the reply")
        return Reply(text=text, stop=EndReason.END, model=self.model)

    def _run(self, stdin: IO[bytes], stderr: IO[bytes]) -> tuple[int, bytes]:
        """Return the program's exit code and output."""
        deadline = time.monotonic() + self.seconds
        with _SignalHold() as held, _watch() as register:
            try:
                process = subprocess.Popen(
                    self.arguments,
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    start_new_session=True,
                    preexec_fn=register,  # noqa: PLW1509 - makes two system calls and takes no lock
                )
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                why = error.strerror if isinstance(error, OSError) else str(error)
                raise BadConfiguration(f"{self.model} cannot be started: {why}") from error
            try:
                held.release()
                output = self._output(process, deadline)
                return process.wait(timeout=max(0.0, deadline - time.monotonic())), output
            except subprocess.TimeoutExpired:
                raise Unreachable(
                    f"{self.model} gave no reply within {self.seconds:g} s",
                    hint="a slow one needs a longer `provider.timeout`",
                ) from None
            finally:
                _end(process)

    def _output(self, process: subprocess.Popen[bytes], deadline: float) -> bytes:
        """Read the program's stdout to its end. Raise TimeoutExpired or Unusable on failure."""
        assert process.stdout is not None
        chunks: list[bytes] = []
        size = 0
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while size <= _MOST:
                if not selector.select(timeout=max(0.0, deadline - time.monotonic())):
                    raise subprocess.TimeoutExpired(self.model, self.seconds)
                if not (chunk := os.read(process.stdout.fileno(), _CHUNK)):
                    return b"".join(chunks)
                chunks.append(chunk)
                size += len(chunk)
        raise Unusable(f"{self.model} wrote more than {_MOST // 1_000_000} MB", hint="a reply is one JSON document")

    def _failure(self, code: int, message: str) -> ProviderFailed:
        how = f"was ended by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        line = as_one_line(f"{self.model} {how}{': ' if message else ''}{message}")
        return Unreachable(line, hint="run it by hand to see why")


def _signal_name(number: int) -> str:
    """Return a signal's name, or its number if it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def command(line: str, *, seconds: float) -> Command:
    """Return the program for a command line, split as a shell would. Raise BadConfiguration if it is not found."""
    try:
        arguments = tuple(shlex.split(line))
    except ValueError as error:
        raise BadConfiguration(f"the command cannot be parsed: {str(error).lower()}") from error
    if not arguments or shutil.which(arguments[0]) is None:
        found = repr(arguments[0][:80]) if arguments else "an empty command"
        raise BadConfiguration(f"{found} is not a program that can be run")
    return Command(arguments=arguments, seconds=seconds)


class _SignalHold:
    """Delays Ctrl-C and SIGTERM while a program starts, since an interrupted start would leave it running."""

    def __init__(self) -> None:
        self._came: list[signal.Signals] = []
        self._handlers: dict[signal.Signals, Callable[[int, FrameType | None], object]] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self  # only the main thread receives signals
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if callable(handler):
                self._handlers[number] = handler
                signal.signal(number, lambda came, _frame: self._came.append(signal.Signals(came)))
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Restore the handlers, and handle the signals that arrived in the meantime."""
        handlers, self._handlers = self._handlers, {}
        for number, handler in handlers.items():
            signal.signal(number, handler)
        came, self._came = self._came, []
        for number in came:
            handlers[number](number, None)


def _write_process_id(pipe: int) -> None:
    os.write(pipe, b"%d\n" % os.getpid())


@contextmanager
def _watch() -> Iterator[Callable[[], None] | None]:
    """Ensure that a program started in this context does not outlive om, even if om is killed.

    A small shell holds the other end of a pipe that the system closes when om ends. Yield a function that the child
    calls before it executes the program; it registers the process id with the shell. Yield None if there is no shell.
    """
    try:
        guard = subprocess.Popen(
            ("/bin/sh", "-c", _GUARD),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        yield None
        return
    assert guard.stdin is not None
    pipe = guard.stdin.fileno()
    try:
        yield partial(_write_process_id, pipe)
    finally:
        guard.kill()  # before the pipe is closed, which would look as if om had ended
        guard.stdin.close()
        guard.wait()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what remains of a program and its children."""
    assert process.stdout is not None
    process.stdout.close()
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _last_line(stderr: IO[bytes]) -> str:
    """Return the last non-blank line of stderr."""
    stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - _KEPT_OF_STDERR))
    lines = [" ".join(line.split()) for line in stderr.read().decode(errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line), "")
