"""A program as a model: the prompt as text on its stdin, the reply on its stdout."""

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
from omcli.llm.model import Prompt, Reply, Stop
from omcli.providers.failures import in_a_line
from omcli.providers.wire import whole_text

_MOST = 8_000_000
"""Bytes that are read of a reply: what writes more does not end."""
_KEPT_OF_STDERR = 4_000
_CHUNK = 65_536
_GUARD = 'read -r group || exit; read -r rest; kill -9 "-$group"'
"""Waits for our end, and kills the group whose number it was told before."""


@record
class Command:
    """A program that is started for every prompt, without a shell, in a process group of its own."""

    arguments: tuple[str, ...]
    seconds: float
    """How long it may take; then the whole group is killed."""

    @property
    def name(self) -> str:
        """`command`."""
        return "command"

    @property
    def model(self) -> str:
        """The program's name. Not its arguments: a key may be among them."""
        return self.arguments[0].rpartition("/")[2]

    @property
    def takes_images(self) -> bool:
        """A text holds none."""
        return False

    def ask(self, prompt: Prompt) -> Reply:
        """What the program says. Raises Unreachable, Unusable, BadConfiguration."""
        with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
            # A file, since a program that doesn't read a pipe to its end takes the writer with it.
            stdin.write(whole_text(prompt).encode(errors="replace"))
            stdin.seek(0)
            code, said = self._run(stdin, stderr)
            if code:
                raise self._failure(code, _end_of(stderr))
        text = said.decode(errors="replace").strip()
        if not text:
            raise Unusable(f"{self.model} ended without a reply", hint="the reply is what it writes to stdout")
        return Reply(text=text, stop=Stop.END, model=self.model)

    def _run(self, stdin: IO[bytes], stderr: IO[bytes]) -> tuple[int, bytes]:
        """Its exit code and its output."""
        deadline = time.monotonic() + self.seconds
        with _Held() as held, _guarded() as tell_guard:
            try:
                process = subprocess.Popen(
                    self.arguments,
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    start_new_session=True,
                    preexec_fn=tell_guard,  # noqa: PLW1509 - it makes two system calls, and nothing that could be locked
                )
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                why = error.strerror if isinstance(error, OSError) else str(error)
                raise BadConfiguration(f"{self.model} cannot be started: {why}") from error
            try:
                held.let_go()
                said = self._output(process, deadline)
                return process.wait(timeout=max(0.0, deadline - time.monotonic())), said
            except subprocess.TimeoutExpired:
                raise Unreachable(
                    f"{self.model} gave no reply within {self.seconds:g} s",
                    hint="a slow one needs a longer `provider.timeout`",
                ) from None
            finally:
                _end(process)

    def _output(self, process: subprocess.Popen[bytes], deadline: float) -> bytes:
        """What it writes until it closes its stdout. Raises TimeoutExpired, Unusable."""
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

    def _failure(self, code: int, said: str) -> ProviderFailed:
        how = f"was ended by {_name_of(-code)}" if code < 0 else f"ended with exit code {code}"
        line = in_a_line(f"{self.model} {how}{': ' if said else ''}{said}")
        return Unreachable(line, hint="run it by hand to see why")


def _name_of(number: int) -> str:
    """A signal as it is known; those for programs' own use have a number only."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def command(line: str, *, seconds: float) -> Command:
    """The program of a command line, split as a shell would. Raises BadConfiguration where there is none."""
    try:
        arguments = tuple(shlex.split(line))
    except ValueError as error:
        raise BadConfiguration(f"the command cannot be read: {str(error).lower()}") from error
    if not arguments or shutil.which(arguments[0]) is None:
        found = repr(arguments[0][:80]) if arguments else "no name"
        raise BadConfiguration(f"the command names no program that can be run: {found}")
    return Command(arguments=arguments, seconds=seconds)


class _Held:
    """Ctrl-C and SIGTERM, put off while a program is started: one that nobody knows of yet would be left behind."""

    def __init__(self) -> None:
        self._came: list[signal.Signals] = []
        self._handlers: dict[signal.Signals, Callable[[int, FrameType | None], object]] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            return self  # it alone is told of signals
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if callable(handler):
                self._handlers[number] = handler
                signal.signal(number, lambda came, _frame: self._came.append(signal.Signals(came)))
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go()

    def let_go(self) -> None:
        """From here on signals do what they did, the ones that came meanwhile first."""
        handlers, self._handlers = self._handlers, {}
        for number, handler in handlers.items():
            signal.signal(number, handler)
        came, self._came = self._came, []
        for number in came:
            handlers[number](number, None)


def _say_number(pipe: int) -> None:
    os.write(pipe, b"%d\n" % os.getpid())


@contextmanager
def _guarded() -> Iterator[Callable[[], None] | None]:
    """Sees to it that a program that is started inside does not outlive us, however we end.

    A small shell holds the other end of a pipe that the system closes with us. Gives what the program has to do before
    it becomes itself: it says its number into the pipe, so that there is no moment in which it runs and nobody knows of
    it. Where there is no shell, None.
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
        yield partial(_say_number, pipe)
    finally:
        guard.kill()  # before the pipe is closed, which would be our end to it
        guard.stdin.close()
        guard.wait()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kills what is left of a program and of what it started, whatever it was left for."""
    assert process.stdout is not None
    process.stdout.close()
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _end_of(stderr: IO[bytes]) -> str:
    """The last line that it wrote to stderr."""
    stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - _KEPT_OF_STDERR))
    lines = [" ".join(line.split()) for line in stderr.read().decode(errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line), "")
