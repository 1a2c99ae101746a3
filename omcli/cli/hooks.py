"""The process of a hook: the client's JSON on stdin, its answer on stdout, and everything that is wrong in a log.

A hook runs at every turn and its client waits for it. So this module imports little, and starts a worker that observes
in the background; only an answer loads the rest of `om`. A hook always exits with 0, because clients take other codes
for decisions: 2 would refuse a prompt, or send an agent round in circles.
"""

import json
import os
import sys
from functools import partial
from time import gmtime, perf_counter, strftime, time

from omcli.clients.events import EVENTS, BadCall, HookCall, Moment, answer, call, of_retired, start_event, takes_text
from omcli.clients.log import RETIRED, WORKER, HookRun, append, has_told, log_path
from omcli.processes import GUARD, open_log, start, state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_OFF = ("0", "false", "no", "off")
_NEXT = "the-next-session"
"""Id that no session has, so that a pack for it has only rows of other sessions."""
_PASSING = (74, 75)
"""Exit codes of a store that may take the transcript later (`base.errors.PASSING`)."""
_LARGEST = 64_000_000
"""Maximum size of a client's JSON, in bytes."""


def run_hook(client: str, text: "Callable[[HookCall], str]", *, has_options: bool = False) -> None:
    """Answer one call of a client, whose JSON is read from stdin, and start a worker unless the event is a start or a
    prompt. Do nothing if the environment turns memory off.

    `text` returns the answer, or "" for none. A pack that was prepared for a new session is printed instead, unless
    options choose another store or settings. Errors and the duration are logged.
    """
    began = perf_counter()
    if is_off(os.environ):
        return
    event, session, error = "", None, None
    try:
        asked = call(client, _read())
        event, session = asked.event, asked.session
        if asked.moment not in (Moment.START, Moment.PROMPT):
            _start_worker(asked)
        if _may_answer(asked):
            found = None if has_options else _pack_of(asked)
            found = text(asked) if found is None else found
            if found:
                _print(answer(asked, found))
    except (BadCall, OSError) as failure:
        error = str(failure)
    log(client, event, session, error=error, began=began)


def _pack_of(asked: HookCall) -> str | None:
    """Return the pack that was prepared for a new session, or None if it has to be made."""
    if not asked.is_new:
        return None
    from omcli.clients.prepared import find

    return find(asked.client, asked.folder or os.getcwd(), os.environ)


def _may_answer(asked: HookCall) -> bool:
    """Return True if the event may have an answer. Packs are prepared only if prompts are not answered. So if a pack
    was made under these settings, this prompt is not answered.
    """
    if asked.moment is not Moment.PROMPT:
        return takes_text(asked)
    from omcli.clients.prepared import has_settings

    return not has_settings(asked.client, asked.folder or os.getcwd(), os.environ)


def is_off(environment: "Mapping[str, str]") -> bool:
    """Return True in a worker of om and in programs that om runs as models, or if the environment turns memory off."""
    disabled = environment.get("OM_DISABLED", "").strip().lower()
    is_disabled = disabled not in ("", *_OFF)
    return bool(environment.get(GUARD)) or is_disabled or environment.get("OM_MEMORY", "").strip().lower() in _OFF


def log(client: str, event: str, session: str | None, *, error: str | None, began: float, ended: int = 1) -> None:
    """Log a run; `ended` is its exit code if there was an error. A log that cannot be written is ignored, because
    nobody could be told.
    """
    now = time()
    at = f"{strftime('%Y-%m-%dT%H:%M:%S', gmtime(now))}.{int(now % 1 * 1000):03}Z"
    ms = round((perf_counter() - began) * 1000)
    run = HookRun(at=at, client=client, event=event, session=session, ended=ended if error else 0, error=error, ms=ms)
    try:
        append(log_path(os.environ), run)
    except OSError:
        return


def _read() -> object:
    """Return the JSON on stdin. Raise BadCall if it is not valid or too large."""
    data = sys.stdin.buffer.read(_LARGEST + 1) if sys.stdin is not None else b""
    if len(data) > _LARGEST:
        raise BadCall(f"stdin has more than {_LARGEST:,} bytes")
    try:
        return json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise BadCall("stdin is not valid JSON") from None


def _print(said: object) -> None:
    if sys.stdout is None:
        raise BadCall("stdout is closed")
    shown = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    data = f"{shown}\n".encode("utf-8", "backslashreplace")
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _start_worker(asked: HookCall) -> None:
    """Start a worker that observes the session's transcript."""
    told = {"event": asked.event, "session": asked.session, "transcript": asked.transcript, "folder": asked.folder}
    try:
        stream = open_log(os.path.join(state_folder(os.environ), "background.log"))
    except OSError:
        stream = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        start(["hook", asked.client, f"--{WORKER}", json.dumps(told)], stream)
    finally:
        os.close(stream)


# ---- hooks of the retired program


def note_retired(words: "Sequence[str]", tell: "Callable[[str], None]") -> bool:
    """Return True if the words are a hook of the retired program `om`. Unless the log has such a run of the client, log
    it, and call `tell` with advice to replace the hook.
    """
    client = of_retired(words)
    if client is None:
        return False
    if not has_told(log_path(os.environ), RETIRED, client):
        tell(f"this hook belongs to a program that is retired; `om install {client}` replaces it")
        log(client, RETIRED, None, error=None, began=perf_counter())
    return True


# ---- the process


def main(client: str, text: "Callable[[HookCall], str]") -> None:
    """Run a hook that has no options, and end the process."""
    sys.excepthook = partial(_failed_hook, client, perf_counter())
    run_hook(client, text)
    os._exit(0)


def _failed_hook(client: str, began: float, kind: type[BaseException], error: BaseException, _: object) -> None:
    """Log an exception that nothing caught, and end the process as if nothing had happened."""
    log(client, "", None, error=f"this is a bug in om: {kind.__name__}: {error}", began=began, ended=70)
    os._exit(0)


# ---- the worker


def work(
    client: str,
    told: str,
    *,
    run: "Callable[[Sequence[str]], int]",
    is_off: "Callable[[], bool]",
    text: "Callable[[HookCall], str]",
    leave: "Callable[[str], None]",
) -> None:
    """Observe the transcript of a session in the background, log the result and, except after a tool, prepare the pack
    of the next session. Do nothing if memory is off or the session has no transcript.

    `run` runs a command line, `is_off` asks the settings that hold in the session's directory, `text` makes the pack,
    and `leave` leaves a transcript that the store could not take to the next command that writes: this may have been
    the session's last event.
    """
    from contextlib import redirect_stderr, redirect_stdout
    from io import StringIO

    began = perf_counter()
    given = json.loads(told)
    session, is_there = given["session"], True
    os.environ[GUARD] = "1"
    try:
        enter(given["folder"])
    except BadCall:
        is_there = False  # a worktree that is deleted at the end of a session
    transcript = given["transcript"] or _transcript(client, session)
    if is_off() or transcript is None or not os.path.isfile(transcript):
        return  # a session that ends before anything was said has no transcript
    said = StringIO()
    with open(os.devnull, "w", encoding="ascii") as nowhere, redirect_stdout(nowhere), redirect_stderr(said):
        code = run(["observe", "--background", "--best-effort", "--quiet", "--", transcript])
    sys.stderr.write(said.getvalue())
    error = _last_error(said.getvalue()) if code else None
    if code in _PASSING:
        leave(os.path.abspath(transcript))
    if is_there and EVENTS[client][given["event"]] is not Moment.TOOL:
        try:
            text(HookCall(client=client, event=start_event(client), session=_NEXT, folder=os.getcwd()))
        except BadCall as failure:
            error, code = error or str(failure), code or 1
    log(client, WORKER, session, error=error, began=began, ended=code)


def enter(folder: str | None) -> None:
    """Change to a client's directory. Raise BadCall if that fails, so that the pack of another project is not shown."""
    if folder is not None:
        try:
            os.chdir(folder)
        except OSError as error:
            raise BadCall(f"cannot enter {folder}: {error.strerror}") from None


def _transcript(client: str, session: str | None) -> str | None:
    """Return the newest transcript of a session in the clients' own folders, for a client that names none."""
    from omcli.formats import agent_files

    if not session:
        return None
    part = session[:8] if client == "gemini" else session
    found = [file for file in agent_files(os.environ) if part in file.name]
    return str(max(found, key=lambda file: file.stat().st_mtime)) if found else None


def _last_error(said: str) -> str:
    lines = [line.removeprefix("om: error: ") for line in said.splitlines() if line.startswith("om: error: ")]
    return lines[-1] if lines else "see background.log"
