"""Reading transcripts ahead in other processes, which leaves this one little more to do than to write.

Each of them reads some of the files, makes their messages safe to store, and applies the rules to them. This process
goes through all files in order, as if it were alone, and looks up what the others made of the same messages. What is
not there, for example because a process was killed, it makes itself.
"""

from __future__ import annotations

import copyreg
import os
import pickle
import signal
import stat
import subprocess
import sys
from _thread import start_new_thread
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from copy import deepcopy
from functools import cache
from io import BytesIO
from math import inf
from pathlib import Path
from queue import Queue
from types import MappingProxyType
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from omcli.base.errors import OmError
from omcli.base.record import record, replace
from omcli.memory.batch import Batch, Observed, next_slice
from omcli.memory.message import KeptMessage, Message, digest
from omcli.memory.observation import Draft
from omcli.memory.transcript import Checkpoint, Item, Transcript
from omcli.observers.rules import RuleObserver
from omcli.observers.rules.status import StatusEvent, update_rows
from omcli.observers.rules.tool_events import running_call
from omcli.operations.ingest.files import FileInput, InputFile, SafeMessage, safe_message
from omcli.operations.ingest.sessions import TranscriptSessions
from omcli.sqlite import SqliteStore
from omcli.tokenizers import counter

if TYPE_CHECKING:
    from omcli.operations.deps import Deps
    from omcli.wiring import Wiring

_MOST_PROCESSES = 4
"""Number of processes by default, this one included, because it cannot write faster than a few others read."""
_LARGEST = 16 << 20
"""Maximum size in bytes of a file to read ahead, because all that is made of it is held in memory."""
_MOST_HELD = 64 << 20
"""Maximum number of bytes of drafts to hold. Beyond it, the oldest are dropped."""
_PIECE, _MOST_PIECES = 1 << 16, 1 << 9
"""Number of bytes written at once, and the number of such pieces that wait until they can be written."""
_GARBAGE = 50_000
"""Number of new objects after which garbage is collected, as in `omcli.__main__`."""
_PROGRAM = (
    "import sys; root = sys.argv.pop(1); root in sys.path or sys.path.insert(0, root)\n"
    "from omcli.cli.main import kept_code\n"
    "with kept_code(['observe']):\n"
    "    from omcli.wiring import ahead, inputs; ahead.main(inputs.transcript)"
)


@record
class _Work:
    """The files that one process reads, and what it needs to know for that."""

    files: tuple[InputFile, ...]
    counter: str
    takes_images: bool
    batch_tokens: int
    batch_messages: int | None
    observes: bool
    """False if no drafts are needed."""


@record
class _Found:
    """A file as a process has read it."""

    transcript: Transcript
    safe: tuple[SafeMessage, ...]
    """Each message of the transcript, in order."""
    drafts: Mapping[str, bytes]
    """The new drafts of each batch, pickled, by its `_key`."""


# ---- in this process


@contextmanager
def reading_ahead(
    wiring: Wiring, inputs: Sequence[FileInput], deps: Deps, *, observes: bool
) -> Iterator[Sequence[FileInput]]:
    """Yield the inputs. Inside the block, other processes read the new files among them and, if `observes`, make drafts
    for the rules of `wiring`.
    """
    given, rules, started = list(inputs), _AheadRules(), list[subprocess.Popen[bytes]]()
    others = (wiring.settings.jobs or min(_process_count(), _MOST_PROCESSES)) - 1
    new = list(_new_files(wiring, inputs)) if others else []
    try:
        for own in filter(None, _shares(new, others)):
            work = _Work(
                files=tuple(each.file for each in own),
                counter=deps.counter.name,
                takes_images=deps.observer.takes_images,
                batch_tokens=deps.observer.batch_tokens,
                batch_messages=deps.observer.batch_messages,
                observes=observes,
            )
            with suppress(OSError):
                started.append(process := _start())
                _send(work, process)
                for each in own:
                    given[each.place] = _AheadInput(given[each.place], process, rules).input
        wiring.rules = rules
        yield given
    finally:
        wiring.rules = None
        for process in started:
            _end(process)


def _process_count() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@record
class _NewFile:
    place: int
    """Its place among the inputs."""
    file: InputFile
    size: float


def _new_files(wiring: Wiring, inputs: Sequence[FileInput]) -> Iterator[_NewFile]:
    """Yield the files that were not ingested before, except for the first input, which this process reads while the
    others start.
    """
    with suppress(OmError), closing(type(wiring)(wiring.settings)) as apart:  # the first input raises the error again
        seen = {taken.origin.path for taken in apart.reading.bookmarks.files()} if apart.has_store else set[str]()
        for place, file in enumerate(entry.file for entry in inputs):
            path = None if file is None else os.path.realpath(file.path)
            if file is not None and path is not None and path not in seen:
                seen.add(path)
                if place and (size := _size(path)) <= _LARGEST:
                    yield _NewFile(place=place, file=replace(file, path=path), size=size)


def _size(path: str) -> float:
    """Return the size of a file. Anything else has no end."""
    with suppress(OSError, ValueError):
        found = os.stat(path)  # noqa: PTH116
        if stat.S_ISREG(found.st_mode):
            return found.st_size
    return inf


def _shares(new: Iterable[_NewFile], count: int) -> list[list[_NewFile]]:
    """Return shares of files of about the same size, each in the order of the files."""
    shares, sizes = [list[_NewFile]() for _ in range(count)], [0.0] * count
    for each in new:
        least = sizes.index(min(sizes))
        shares[least].append(each)
        sizes[least] += each.size
    return shares


def _start() -> subprocess.Popen[bytes]:
    """Start another process. It has a terminal session of its own, because Ctrl-C is for this process to handle."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _PROGRAM, str(Path(__file__).parents[2])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _send(work: _Work, process: subprocess.Popen[bytes]) -> None:
    """Tell a process its work. The pipe stays open, so that the process notices when this one ends."""
    assert process.stdin is not None
    before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        process.stdin.write(pickle.dumps(work))
        process.stdin.flush()
    finally:
        signal.signal(signal.SIGPIPE, before)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in filter(None, (process.stdin, process.stdout)):
        with suppress(OSError):
            pipe.close()


class _AheadInput:
    """An input that another process reads. The inputs of a process must be opened in order."""

    def __init__(self, entry: FileInput, process: subprocess.Popen[bytes], rules: _AheadRules) -> None:
        self.input = replace(entry, open=self._open, known=self._find)
        self._entry, self._process, self._rules = entry, process, rules
        self._safe: dict[int, SafeMessage] = {}
        """By the `id` of the message, which exists as long as the input is open."""

    @contextmanager
    def _open(self) -> Iterator[Transcript]:
        """Yield the transcript as the other process read it. If it could not, read it here, with the same errors."""
        found = _next(self._process)
        if found is None:
            with self._entry.open() as transcript:
                yield transcript
            return
        messages = (item for item in found.transcript.items if isinstance(item, Message))
        self._safe = {id(message): safe for message, safe in zip(messages, found.safe, strict=True)}
        self._rules.add(found.drafts)
        try:
            yield found.transcript
        finally:
            self._safe = {}

    def _find(self, message: Message) -> SafeMessage | None:
        return self._safe.get(id(message))


def _next(process: subprocess.Popen[bytes]) -> _Found | None:
    """Return what a process made of its next file, or None if it could not read it or has ended."""
    assert process.stdout is not None
    try:
        found: _Found | None = pickle.load(process.stdout)  # noqa: S301 - our own program wrote it
    except (EOFError, pickle.UnpicklingError):
        return None
    return found


class _AheadRules:
    """An observer that looks up what other processes made of the batches of this one."""

    def __init__(self) -> None:
        self._pickled: dict[str, bytes] = {}
        self._size = 0

    def add(self, found: Mapping[str, bytes]) -> None:
        for key, pickled in found.items():
            self._size += len(pickled) - len(self._pickled.pop(key, b""))
            self._pickled[key] = pickled
        while self._size > _MOST_HELD:
            self._size -= len(self._pickled.pop(next(iter(self._pickled))))

    def observe(self, batch: Batch) -> Observed:
        """Return the same as `RuleObserver`, of the known drafts of the batch if there are any.

        They are not used if they may depend on calls that earlier batches left running.
        """
        pickled = b""
        if self._pickled and not any(map(running_call, batch.context_rows)):
            pickled = self._pickled.pop(_key(batch), b"")
            self._size -= len(pickled)
        if not pickled:
            return RuleObserver().observe(batch)
        drafts, events = _Reader(pickled, batch).load()
        return Observed(drafts=update_rows(batch.context_rows, drafts, events))


# ---- drafts without numbers of messages, which are known only once these are stored


class _Number(int):
    """Number of a message in a process that does not store it."""


def _messages(batch: Batch) -> list[KeptMessage]:
    """Return the messages on which the new drafts of a batch depend, and which they may cite."""
    said = () if batch.last_said is None or all(kept.message.agent for kept in batch.messages) else (batch.last_said,)
    return [*batch.earlier_calls, *said, *batch.messages]


def _key(batch: Batch) -> str:
    """Return a digest of everything on which the new drafts of a batch depend, except for its context rows."""
    messages = (repr(kept.message) for kept in _messages(batch))
    return digest(batch.cwd, str(len(batch.earlier_calls)), str(len(batch.messages)), *messages)


class _Writer(pickle.Pickler):
    """Writes drafts with the place of each message in the batch instead of its number."""

    def __init__(self, stream: BinaryIO, batch: Batch) -> None:
        super().__init__(stream, protocol=pickle.HIGHEST_PROTOCOL)
        self._places = {kept.seq: place for place, kept in enumerate(_messages(batch))}

    def _place(self, value: object) -> int | None:
        return self._places[value] if isinstance(value, _Number) else None

    persistent_id = _place


class _Reader(pickle.Unpickler):
    """Reads drafts with the number of each message in the batch."""

    def __init__(self, pickled: bytes, batch: Batch) -> None:
        super().__init__(BytesIO(pickled))
        self._numbers = [kept.seq for kept in _messages(batch)]

    def _number(self, place: int) -> int:
        return self._numbers[place]

    persistent_load = _number


# ---- in another process


def main(opened: Callable[..., AbstractContextManager[Transcript]]) -> NoReturn:
    """Open the files named on stdin with `inputs.transcript`, and write what becomes of each to stdout, or None if it
    cannot be read.
    """
    import gc

    gc.set_threshold(_GARBAGE)
    copyreg.pickle(MappingProxyType, _as_dict)
    pieces = Queue[bytes](_MOST_PIECES)
    with os.fdopen(0, "rb", closefd=False) as stdin:
        work: _Work = pickle.load(stdin)  # noqa: S301 - our own program wrote it
    start_new_thread(_wait_and_exit, ())
    start_new_thread(_write, (pieces,))
    for file in work.files:
        found = None
        opening = opened(file.path, lambda _: (), format_name=file.format_name, session=file.session)
        with suppress(OmError), opening as transcript:
            found = _found(transcript, file.session, work)
        pickled = pickle.dumps(found, protocol=pickle.HIGHEST_PROTOCOL)
        for begin in range(0, len(pickled), _PIECE):
            pieces.put(pickled[begin : begin + _PIECE])
    pieces.join()
    os._exit(0)


def _write(pieces: Queue[bytes]) -> NoReturn:
    """Write pieces to stdout when there is room, so that this process can read on while the other one is busy."""
    with os.fdopen(1, "wb") as results:
        while True:
            results.write(pieces.get())
            results.flush()
            pieces.task_done()


def _wait_and_exit() -> NoReturn:
    """Exit when the other end of stdin is closed, at the latest when that process ends."""
    os.read(0, 1)
    os._exit(0)


def _found(transcript: Transcript, session: str | None, work: _Work) -> _Found:
    """Read a transcript as `ingest_files` does, but without a store. Raise the errors of reading it."""
    tokens, items, safe = counter(work.counter), list[Item](), list[SafeMessage]()
    sessions = defaultdict[str, list[KeptMessage]](list)
    listed = replace(transcript, items=_listed(transcript.items, items))
    conversations = TranscriptSessions(listed, open_store=cache(SqliteStore.temporary), session=session)
    for step in conversations:
        if isinstance(step, Checkpoint):
            continue
        session_id, message = step
        safe.append(made := safe_message(message, tokens, takes_images=work.takes_images))
        kept = KeptMessage(
            seq=_Number(len(safe)),
            session=session_id,
            key="",
            message=made.message,
            tokens=made.tokens,
            counter=tokens.name,
        )
        sessions[session_id].append(kept)
    drafts: dict[str, bytes] = {}
    for session_id, messages in sessions.items() if work.observes else ():
        drafts |= _drafts(messages, conversations.sessions[session_id].cwd, work)
    images = (made.message.images for made in safe)  # with their content only if that is to be stored
    light = (replace(item, images=next(images)) if isinstance(item, Message) else item for item in items)
    return _Found(transcript=replace(transcript, items=tuple(light)), safe=tuple(safe), drafts=drafts)


def _listed(items: Iterable[Item], into: list[Item]) -> Iterator[Item]:
    """Yield items, and add them to a list as they are now, because a reader goes on to change its state."""
    for item in items:
        into.append(deepcopy(item) if isinstance(item, Checkpoint) else item)
        yield item


def _drafts(messages: Sequence[KeptMessage], cwd: str | None, work: _Work) -> Iterator[tuple[str, bytes]]:
    """Yield the key and the new drafts of each batch, if nothing of the session is stored before."""
    last, after = messages[-1].seq, 0
    whole = Batch(session=messages[0].session, after=after, through=last, messages=tuple(messages), cwd=cwd)
    while after < last:
        batch = next_slice(whole, after=after, max_tokens=work.batch_tokens, max_messages=work.batch_messages)
        _Writer(stream := BytesIO(), batch).dump(_new_drafts(batch))
        yield _key(batch), stream.getvalue()
        after = batch.through


def _new_drafts(batch: Batch) -> tuple[list[Draft], list[StatusEvent]]:
    """Return the new rows of a batch, and the events in it that may change earlier rows."""
    drafts, events = list[Draft](), list[StatusEvent]()

    def keep(_: object, new: Iterable[Draft], found: Iterable[StatusEvent]) -> tuple[Draft, ...]:
        drafts.extend(new)
        events.extend(found)
        return ()

    RuleObserver(keep).observe(batch)
    return drafts, events


_ReadOnly = MappingProxyType[str, object]


def _as_dict(metadata: _ReadOnly) -> tuple[Callable[[dict[str, object]], _ReadOnly], tuple[dict[str, object]]]:
    """Return how to make metadata again, because a read-only mapping cannot be pickled."""
    return _read_only, (dict(metadata),)


def _read_only(metadata: dict[str, object]) -> _ReadOnly:
    return MappingProxyType(metadata)
