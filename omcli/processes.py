"""Starting `om` in the background, and its logs in the user's state folder.

Every hook loads this module and waits for what it imports, so paths are strings and `typing` is not imported.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GUARD = "OM_WORKER"
"""Variable that marks om's workers and the programs that om runs as models. Their sessions are not remembered."""
_LARGEST = 1_000_000
"""Size in bytes from which a log is rotated when it is opened. One old log is kept."""
_PROGRAM = (
    "import sys; root = sys.argv.pop(1); root in sys.path or sys.path.insert(0, root);"
    " from omcli.__main__ import main; main()"
)
"""Program that runs this installation of om. With `-P`, modules in the current directory are not found."""
_STREAMS = 3
"""Number of standard streams: stdin, stdout and stderr."""
_MOST = 1024


def state_folder(environment: "Mapping[str, str]") -> str:
    """Return the path of om's own folder for state and logs of the user."""
    if sys.platform == "linux" and "ANDROID_ROOT" not in environment:
        # The same result as platformdirs, which would delay the caller by 3 ms.
        folder = environment.get("XDG_STATE_HOME", "").strip() or os.path.expanduser("~/.local/state")
        return os.path.join(folder, "om")
    from platformdirs import user_state_dir

    return user_state_dir("om", appauthor=False)


def open_log(log: str) -> int:
    """Open a log for appending, readable only by the user, and return its descriptor. A full log is rotated first.
    Raise OSError on failure.
    """
    os.makedirs(os.path.dirname(log), mode=0o700, exist_ok=True)
    stream = _opened(log)
    if os.fstat(stream).st_size < _LARGEST:
        return stream
    try:
        _move_full_log(log, stream)
    finally:
        os.close(stream)
    return _opened(log)


def _opened(log: str) -> int:
    return os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _move_full_log(log: str, stream: int) -> None:
    """Rotate a full log under a lock, so that only one process does so."""
    import fcntl

    fcntl.flock(stream, fcntl.LOCK_EX)
    try:
        if os.path.samestat(os.fstat(stream), os.stat(log)):
            os.replace(log, f"{log}.1")
    except FileNotFoundError:
        return


def start(words: "Sequence[str]", log: int) -> None:
    """Start `om` with these arguments and return at once. `log` is the descriptor of its output.

    The process runs in its own session, so it survives a closed terminal. It reads nothing and writes to the log. It
    inherits the current directory, environment and umask but no open files, so that readers of our output do not wait
    for it to end. Raise OSError if it cannot be started.
    """
    import signal

    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    command = [sys.executable, "-P", "-c", _PROGRAM, root, *words]
    _keep_private()
    os.posix_spawn(
        command[0],
        command,
        os.environ,
        # The log first, because its descriptor is 0 if we were started without stdin.
        file_actions=[
            (os.POSIX_SPAWN_DUP2, log, 1),
            (os.POSIX_SPAWN_DUP2, log, 2),
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        ],
        setsid=True,
        setsigdef=[signal.SIGINT, signal.SIGPIPE],
    )


def _keep_private() -> None:
    """Mark our descriptors, so that a process inherits only the standard streams. Python marks those that it opens."""
    try:
        numbers = list(map(int, os.listdir("/dev/fd")))
    except OSError:  # this system has no such folder
        numbers = list(range(_MOST))
    for number in numbers:
        if number >= _STREAMS:
            try:
                os.set_inheritable(number, False)  # noqa: FBT003
            except OSError:  # closed since, like the descriptor used for listing
                continue
