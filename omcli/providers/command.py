"""A program in place of a model: the prompt is passed as text on its stdin, and its stdout is the reply.

The Python API takes a function instead.
"""

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
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import IO, Self

from omcli.base.errors import BadConfiguration, ProviderFailed, Unreachable, Unusable
from omcli.base.record import record
from omcli.llm.model import EndReason, OutputMode, Prompt, Reply
from omcli.processes import GUARD
from omcli.providers.failures import as_one_line
from omcli.providers.wire import joined, largest_reply, system_text, whole_text

_KEPT_OF_STDERR = 4_000
_CHUNK = 65_536
_GUARD = 'read -r group || exit; read -r rest; kill -9 "-$group"'
"""Shell script that reads a process group id from its stdin, and kills that group once om's end of the pipe closes."""


@record
class Command:
    """A program that is started for every prompt, without a shell and in a process group of its own."""

    arguments: tuple[str, ...]
    seconds: float
    """Timeout of each run. When it expires, the whole process group is killed."""

    @property
    def name(self) -> str:
        """Always `command`."""
        return "command"

    @property
    def model(self) -> str:
        """The program's file name. Its arguments are omitted because they may contain a key."""
        return self.arguments[0].rpartition("/")[2]

    @property
    def takes_images(self) -> bool:
        """Always False, because the prompt is passed as text."""
        return False

    def ask(self, prompt: Prompt) -> Reply:
        """Run the program and return its output as the reply.

        Raise BadConfiguration if the program cannot be started, Unreachable if it fails or exceeds the timeout, and
        Unusable if its output is empty or too large.
        """
        prompt.calls.take()
        with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
            # stdin is a file, because writing to a pipe fails if the program does not read all of it.
            stdin.write(whole_text(prompt).encode(errors="replace"))
            stdin.seek(0)
            code, output = self._run(stdin, stderr, most=largest_reply(prompt.max_output))
            if code:
                raise self._failure(code, _last_line(stderr))
        text = output.decode(errors="replace").strip()
        if not text:
            raise Unusable(f"{self.model} ended without a reply", hint="its stdout is the reply")
        return Reply(text=text, stop=EndReason.END, model=self.model)

    def _run(self, stdin: IO[bytes], stderr: IO[bytes], *, most: int) -> tuple[int, bytes]:
        deadline = time.monotonic() + self.seconds
        with _SignalHold() as held, _watch() as register:
            try:
                process = subprocess.Popen(
                    self.arguments,
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    env={**os.environ, GUARD: "1"},
                    start_new_session=True,
                    preexec_fn=register,  # noqa: PLW1509 - makes two system calls and takes no lock
                )
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                why = error.strerror if isinstance(error, OSError) else str(error)
                raise BadConfiguration(f"{self.model} cannot be started: {why}") from error
            try:
                held.release()
                output = self._output(process, deadline, most=most)
                return process.wait(timeout=max(0.0, deadline - time.monotonic())), output
            except subprocess.TimeoutExpired:
                raise Unreachable(
                    f"{self.model} gave no reply within {self.seconds:g} s",
                    hint="a slow one needs a longer `provider.timeout`",
                ) from None
            finally:
                _end(process)

    def _output(self, process: subprocess.Popen[bytes], deadline: float, *, most: int) -> bytes:
        """Read the program's stdout to its end.

        Raise TimeoutExpired at the deadline, and Unusable if there are more than `most` bytes.
        """
        assert process.stdout is not None
        chunks: list[bytes] = []
        size = 0
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while size <= most:
                if not selector.select(timeout=max(0.0, deadline - time.monotonic())):
                    raise subprocess.TimeoutExpired(self.model, self.seconds)
                if not (chunk := os.read(process.stdout.fileno(), _CHUNK)):
                    return b"".join(chunks)
                chunks.append(chunk)
                size += len(chunk)
        raise Unusable(f"{self.model} wrote more than {most} bytes", hint="a reply is one JSON document")

    def _failure(self, code: int, message: str) -> ProviderFailed:
        how = f"was ended by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        line = as_one_line(f"{self.model} {how}{': ' if message else ''}{message}")
        return Unreachable(line, hint="run it by hand to see why")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def command(line: str, *, seconds: float) -> Command:
    """Return the program for a command line, which is split as a shell does, but without expanding variables.

    Raise BadConfiguration if the line cannot be parsed or its program is not found.
    """
    try:
        arguments = tuple(shlex.split(line))
    except ValueError as error:
        raise BadConfiguration(f"the command cannot be parsed: {str(error).lower()}") from error
    if not arguments or shutil.which(arguments[0]) is None:
        found = repr(arguments[0][:80]) if arguments else "an empty command"
        raise BadConfiguration(f"{found} is not a program that can be run")
    return Command(arguments=arguments, seconds=seconds)


class _SignalHold:
    """Delays Ctrl-C and SIGTERM while a program is started, because an interrupted start could leave it running."""

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
        """Restore the signal handlers, and call them for the signals received while they were replaced."""
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

    A small shell reads from a pipe that the system closes when om ends, and then kills the program. Yield a function
    that the child process calls before it executes the program, to send its process id to the shell. Yield None if
    there is no shell.
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
        guard.kill()  # before the pipe closes, because that would look as if om had ended
        guard.stdin.close()
        guard.wait()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the program and all children that are left in its process group, even if the program itself has ended."""
    assert process.stdout is not None
    process.stdout.close()
    with suppress(ProcessLookupError, PermissionError):  # no process is left; macOS raises the other for zombies
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_line(stderr: IO[bytes]) -> str:
    """Return the last non-blank line of stderr, or an empty string if its last 4,000 bytes have none."""
    stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - _KEPT_OF_STDERR))
    lines = [" ".join(line.split()) for line in stderr.read().decode(errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line), "")


# ---- a function


ModelFunction = Callable[[str, str], str]
"""Function that takes the instructions and the prompt, and returns a model's reply."""


class OwnModel:
    """A function of a Python program in place of a model. It is called once per prompt and must limit its own time."""

    name = "function"
    takes_images = False

    def __init__(self, function: ModelFunction) -> None:
        self.model = str(getattr(function, "__name__", type(function).__name__))
        self._function = function

    def ask(self, prompt: Prompt) -> Reply:
        """Call the function and return its reply. Raise Unusable if that is empty or not text. Pass on the function's
        errors.
        """
        prompt.calls.take()
        shown = "".join(part for part in joined(prompt.content, pictures=False) if isinstance(part, str))
        text = self._function(system_text(prompt, OutputMode.PROMPT), shown)
        if not isinstance(text, str) or not text.strip():
            raise Unusable(f"the function {self.model} returned no reply", hint="it returns the model's reply as text")
        return Reply(text=text.strip(), stop=EndReason.END, model=self.model)
