"""Starting a worker: a process of its own that outlives its caller and holds nothing of it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import omcli
from omcli.base.errors import CannotCreate
from omcli.workers.log import opened

_PROGRAM = (
    "import sys; root = sys.argv.pop(1); root in sys.path or sys.path.insert(0, root);"
    " from omcli.__main__ import main; main()"
)
"""The same `om` as this one, wherever it lies; `-P` keeps out what lies in the current directory."""
_STREAMS = 3
"""What is open by these numbers is stdin, stdout and stderr."""
_MOST = 1024


def start(words: Sequence[str], log: Path) -> None:
    """Starts `om` with these words, and comes back at once.

    It is in a session of its own, where no terminal that closes reaches it; reads nothing, and writes to the log. The
    current directory, the environment and the umask are ours. Of what we, or who started us, have open it gets nothing:
    who reads what we print until the end is not kept waiting. Raises CannotCreate.
    """
    root = str(Path(omcli.__file__).parents[1])
    command = [sys.executable, "-P", "-c", _PROGRAM, root, *words]
    stream = opened(log)
    try:
        _keep_to_oneself()
        os.posix_spawn(
            command[0],
            command,
            os.environ,
            # The log first: its number is 0 where we were started without a stdin.
            file_actions=[
                (os.POSIX_SPAWN_DUP2, stream, 1),
                (os.POSIX_SPAWN_DUP2, stream, 2),
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            ],
            setsid=True,
            setsigdef=[signal.SIGINT, signal.SIGPIPE],
        )
    except OSError as error:
        raise CannotCreate(f"no worker can be started: {error.strerror}", hint="`om tick` does what is due") from error
    finally:
        os.close(stream)


def _keep_to_oneself() -> None:
    """Marks what was inherited as not to be inherited further; what Python opens is so from the beginning."""
    try:
        numbers = list(map(int, os.listdir("/dev/fd")))  # noqa: PTH208 - names are all that is wanted
    except OSError:  # a system without
        numbers = list(range(_MOST))
    for number in numbers:
        if number >= _STREAMS:
            with suppress(OSError):  # no longer open, as the one that they were listed with
                os.set_inheritable(number, False)  # noqa: FBT003
