"""Whether `om` is as quick and as small as it should be: one table of what was measured and what was aimed at.

Run as `python -m tests.benchmarks [--quick] [--only NAME]`. Everything is a ratio between whole processes that run in
turns on the same machine, so that the table says the same on a fast one, a slow one and a busy one. A benchmark makes
its own transcripts and stores in a temporary folder. `--quick` leaves out what takes minutes: the largest store and the
largest transcript, and other tools, which are installed from the package index.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from omcli.sqlite import SqliteStore
from omcli.sqlite.dialect import prepare
from tests.benchmarks import stores, transcripts
from tests.benchmarks.measuring import OM, Compared, Cost, compared, machine, peak, run
from tests.benchmarks.peers import Peers

_NOTHING = (sys.executable, "-c", "pass")
_PARSE = "import json, sys\nfor line in open(sys.argv[1], 'rb'): json.loads(line)"
_MB = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the table: a ratio, and what it should be at most; None where it is there to compare with."""

    what: str
    measured: float
    aim: float | None
    detail: str

    @property
    def is_met(self) -> bool:
        """Whether the aim was reached."""
        return self.aim is None or self.measured <= self.aim

    def __str__(self) -> str:
        aim, met = ("", "") if self.aim is None else (f"{self.aim:.2f}", "met" if self.is_met else "NOT MET")
        return f"{self.what:62} {self.measured:6.2f} {aim:>6}  {met:8} {self.detail}"


class Bench:
    """The inputs, made when they are first asked for, and what is measured on them."""

    def __init__(self, folder: Path, *, is_quick: bool) -> None:
        self._folder = folder
        self._is_quick = is_quick
        self._pairs = 5 if is_quick else 15
        self._new = count()

    def start(self) -> Iterator[Row]:
        """What commands cost that only print about themselves."""
        for option, aim in (("--version", 2), ("--help", 4)):
            done = compared(partial(run, *OM, option), lambda: run(*_NOTHING), pairs=self._pairs)
            yield _row(f"om {option} / python -c pass", done, aim=aim)

    def context(self) -> Iterator[Row]:
        """`om context` on stores of different size."""
        small, large, huge = (self._store(rows) for rows in (10_000, 100_000, 10_000 if self._is_quick else 1_000_000))
        done = compared(lambda: self._context(large), lambda: run(*_NOTHING), pairs=self._pairs)
        yield _row("om context, 100k rows / python -c pass", done, aim=5)
        if not self._is_quick:
            done = compared(lambda: self._context(huge), lambda: self._context(small), pairs=self._pairs)
            yield _row("om context, 1M rows / 10k rows", done, aim=1.3)

    def hook(self) -> Iterator[Row]:
        """`om hook`: a prompt that is not answered, the end of a turn, and packs that start a session."""
        state = self._folder / "state"
        env = {"OM_DB": str(self._store(100_000)), "OM_SCOPE": "global", "XDG_STATE_HOME": str(state)}

        def called(event: str, *, anew: bool = False) -> Cost:
            stdin = self._folder / f"{event}.json"
            called = {"hook_event_name": event, "session_id": "a-session-to-come", "cwd": str(self._folder)}
            stdin.write_text(json.dumps({**called, "prompt": "Go on.", "transcript_path": str(self._folder / "none")}))
            if anew:
                shutil.rmtree(state / "om" / "packs", ignore_errors=True)
            return run(*OM, "hook", "claude-code", stdin=stdin, env=env)

        called("SessionStart")
        for event, what in (("UserPromptSubmit", "a prompt, not answered"), ("Stop", "the end of a turn")):
            done = compared(partial(called, event), lambda: run(*_NOTHING), pairs=self._pairs)
            yield _row(f"om hook, {what} / python -c pass", done, aim=3)
        for anew, what in ((False, "prepared"), (True, "made")):
            done = compared(partial(called, "SessionStart", anew=anew), lambda: run(*_NOTHING), pairs=self._pairs)
            yield _row(f"om hook, a pack of 100k rows, {what} / python -c pass", done, aim=5)

    def reads(self) -> Iterator[Row]:
        """Commands that only look, on stores of different size."""
        large, huge = (self._store(rows) for rows in (100_000, 100_000 if self._is_quick else 1_000_000))
        session = ("--session", stores.SESSION)
        for words in (("tick", "--check"), ("status",), ("pending",), ("context", "--working-memory", *session)):
            what = " ".join(words[:2])

            def looked(db: Path, words: tuple[str, ...] = words) -> Cost:
                return run(*OM, *words, "--db", db, codes=(0, 1))

            done = compared(partial(looked, large), lambda: run(*_NOTHING), pairs=self._pairs)
            yield _row(f"om {what}, 100k rows / python -c pass", done, aim=8)
            if not self._is_quick:
                done = compared(partial(looked, huge), partial(looked, large), pairs=self._pairs)
                yield _row(f"om {what}, 1M rows / 100k", done, aim=1.3)

    def upkeep(self) -> Iterator[Row]:
        """Commands that look for what to hide or fold, without doing it."""
        rows = 100_000 if self._is_quick else 1_000_000
        db = self._store(rows)
        for words in (
            ("prune", "--older-than", "2026-01-06"),
            ("forget", "--match", "no row says this"),
            ("reflect", "--global"),
            ("consolidate",),
        ):
            command = (*OM, *words, "--dry-run", "--db", db)
            cost = run(*command, codes=(0, 1, 69))
            held = peak(*command, codes=(0, 1, 69))
            detail = f"{cost.cpu:.1f} s of processor time, {held / _MB:.0f} MB"
            what = f"om {words[0]} --dry-run, {rows // 1000}k rows"
            yield Row(what=f"{what}: seconds / 5", measured=cost.cpu / 5, aim=1, detail=detail)
            yield Row(what=f"{what}: MB / 100", measured=held / _MB / 100, aim=1, detail=detail)

    def recall(self) -> Iterator[Row]:
        """`om recall` among messages and as many rows."""
        large, huge = (self._searchable(rows) for rows in (100_000, 100_000 if self._is_quick else 1_000_000))
        done = compared(lambda: self._recall(large), lambda: run(*_NOTHING), pairs=self._pairs)
        yield _row("om recall, 100k messages and rows / python -c pass", done, aim=12)
        if not self._is_quick:
            done = compared(lambda: self._recall(huge), lambda: self._recall(large), pairs=self._pairs)
            yield _row("om recall, 1M messages and rows / 100k", done, aim=3)
        held = peak(*OM, "recall", stores.query(), "--db", huge)
        detail = f"{held / _MB:.0f} MB"
        yield Row(what="peak memory of om recall / 80 MB", measured=held / _MB / 80, aim=1, detail=detail)

    def index(self) -> Iterator[Row]:
        """What the index of words takes on disk and of the time of `om observe`."""
        db = self._db()
        self._observe(self._transcript(20), db)
        text, before = _text_in(db), _vacuumed(db)
        _drop_index(db)
        took = before - _vacuumed(db)
        detail = f"{took / _MB:.1f} MB for {text / _MB:.1f} MB of text"
        yield Row(what="index of words / text", measured=took / text, aim=0.4, detail=detail)
        path = self._transcript(4)

        def without() -> Cost:
            bare = self._db()
            SqliteStore.open(bare, wait=1).close()
            _drop_index(bare)
            return self._observe(path, bare)

        done = compared(lambda: self._observe(path), without, pairs=self._pairs)
        yield _row("om observe, 4 MB / the same without the index", done, aim=1.25)

    def observe(self) -> Iterator[Row]:
        """`om observe` of a transcript that is new: 4 MB, each further megabyte, and ten lines from a pipe."""
        path = self._transcript(4)
        done = compared(lambda: self._observe(path), lambda: _parse(path), pairs=self._pairs)
        yield _row("om observe, 4 MB / json.loads of its lines", done, aim=8)
        if not self._is_quick:
            yield self._further(path, self._transcript(40))
        ten = self._folder / "ten.jsonl"
        ten.write_text("".join(islice(transcripts.lines(1), 10)), encoding="utf-8")
        db = self._db()

        def piped(to: Path) -> Cost:
            return run(*OM, "observe", "--quiet", "--db", to, "-", stdin=ten)

        done = compared(lambda: piped(self._db()), lambda: run(*_NOTHING), pairs=self._pairs)
        yield _row("om observe -, ten lines / python -c pass", done, aim=7)
        done = compared(lambda: piped(db), lambda: run(*_NOTHING), pairs=self._pairs)
        yield _row("om observe -, ten lines again / python -c pass", done, aim=4.5)

    def _further(self, small: Path, large: Path) -> Row:
        """How much more `om observe` takes for a large transcript than for a small one."""
        costs = [
            [median(cost(path).cpu for _ in range(3)) for path in (small, large)] for cost in (self._observe, _parse)
        ]
        (less, more), (parsed_less, parsed_more) = costs
        further, parsed = more - less, parsed_more - parsed_less
        detail = f"{further * 1000 / 36:.0f} ms / {parsed * 1000 / 36:.1f} ms of processor time"
        return Row(
            what="om observe, each MB from 4 to 40 / json.loads", measured=further / parsed, aim=15, detail=detail
        )

    def small(self) -> Iterator[Row]:
        """`om observe` of many small things: short turns, and the calls of one message."""
        for write, what in (
            (transcripts.write_turns, "50,000 tiny messages"),
            (transcripts.write_calls, "100,000 calls"),
        ):
            path = self._folder / f"{write.__name__}.jsonl"
            write(path)
            cost = self._observe(path)
            detail = f"{cost.cpu:.1f} s of processor time"
            yield Row(what=f"om observe, {what}: seconds / 4", measured=cost.cpu / 4, aim=1, detail=detail)

    def several(self) -> Iterator[Row]:
        """`om observe` of files of many sessions, by the clock: with all processors, and with one."""
        files = [self._session(number) for number in range(10 if self._is_quick else 40)]

        def observed(*jobs: str) -> Cost:
            return run(*OM, "observe", "--quiet", *jobs, "--db", self._db(), *files)

        done = compared(observed, lambda: observed("--jobs", "1"), pairs=min(self._pairs, 5))
        detail = (
            f"{done.cost.wall:.1f} s / {done.other.wall:.1f} s by the clock; {done.cost.cpu:.1f} s /"
            f" {done.other.cpu:.1f} s of processor time"
        )
        what = f"om observe, {len(files)} sessions, all processors / one, by the clock"
        yield Row(what=what, measured=done.wall, aim=0.59 if _processors() > 1 else None, detail=detail)

    def memory(self) -> Iterator[Row]:
        """What `om observe` holds in memory at once."""
        if self._is_quick:
            return
        small, large = self._transcript(4), self._transcript(200)
        held, model = (peak(*OM, "observe", "--quiet", "--db", self._db(), path) for path in (large, small))
        detail = f"{held / _MB:.0f} MB / {model / _MB:.0f} MB"
        yield Row(what="peak memory of om observe, 200 MB / 4 MB", measured=held / model, aim=1.5, detail=detail)

    def again(self) -> Iterator[Row]:
        """`om observe` of a transcript that was taken in before, and of one that has grown since by one turn."""
        path = self._transcript(20)
        db = self._db()
        self._observe(path, db)
        done = compared(lambda: self._observe(path, db), lambda: run(*_NOTHING), pairs=self._pairs)
        yield _row("om observe, 20 MB again / python -c pass", done, aim=7)
        seeds = count(2)

        def grown() -> Cost:
            transcripts.grow(path, seed=next(seeds))
            return self._observe(path, db)

        done = compared(grown, lambda: run(*_NOTHING), pairs=self._pairs)
        yield _row("om observe, 20 MB grown by a turn / python -c pass", done, aim=9)

    def background(self) -> Iterator[Row]:
        """`om observe --background` of a transcript that has grown by a turn, which a worker is left with."""
        path, config = self._transcript(4), self._folder / "eager.toml"
        config.write_text("[observe]\ntokens = 1\nblock_after = 0\n")
        seeds = count(1_000)
        stores = {way: self._db() for way in ("--later", "--background")}

        def grown(way: str) -> Cost:
            transcripts.grow(path, seed=next(seeds))
            return run(*OM, "observe", "--quiet", way, "--db", stores[way], "--config", config, path)

        for way in stores:
            grown(way)
        done = compared(lambda: grown("--background"), lambda: grown("--later"), pairs=self._pairs)
        yield _row("om observe --background, grown by a turn / --later", done, aim=1.3)

    def peers(self) -> Iterator[Row]:
        """What other tools take for a part of this, and `om` beside them."""
        if self._is_quick:
            return
        tools = Peers(self._folder / "peers")
        other = partial(compared, pairs=self._pairs)
        for tool in ("om", "llm", "sqlite-utils"):
            name = "observational-memory" if tool == "om" else tool
            yield _row(f"{name} --version / python -c pass", other(partial(tools.version, tool), tools.nothing))
        yield _row("observational-memory context, 10k rows / python -c pass", other(tools.context, tools.nothing))
        small = self._store(10_000)
        yield _row("om context, 10k rows / the same", other(lambda: self._context(small), tools.context))
        yield _row("observational-memory search, 10k rows / python -c pass", other(tools.search, tools.nothing))
        found = self._searchable(10_000)
        yield _row("om recall, 10k messages and rows / the same", other(lambda: self._recall(found), tools.search))
        path, db = self._transcript(4), self._db()
        done = other(lambda: tools.insert(path, db), lambda: run(sys.executable, "-c", _PARSE, path))
        yield _row("sqlite-utils insert, 4 MB, with index / json.loads of its lines", done)

    def size(self) -> Iterator[Row]:
        """What a store takes on disk for what it keeps."""
        db = self._db()
        self._observe(self._transcript(20), db)
        kept = _text_in(db)
        size = db.stat().st_size
        detail = f"{size / _MB:.1f} MB for {kept / _MB:.1f} MB of text"
        yield Row(what="store of a 20 MB transcript / text kept in it", measured=size / kept, aim=1.6, detail=detail)

    def _recall(self, db: Path) -> Cost:
        return run(*OM, "recall", stores.query(), "--db", db)

    def _context(self, db: Path) -> Cost:
        return run(*OM, "context", "--db", db, "--session", stores.SESSION)

    def _observe(self, path: Path, db: Path | None = None) -> Cost:
        return run(*OM, "observe", "--quiet", "--db", db or self._db(), path)

    def _db(self) -> Path:
        """Where a new store may be."""
        folder = self._folder / f"store-{next(self._new)}"
        folder.mkdir()
        return folder / "memory.db"

    def _store(self, rows: int) -> Path:
        path = self._folder / f"{rows}.db"
        if not path.exists():
            stores.fill(path, rows)
        return path

    def _searchable(self, rows: int) -> Path:
        path = self._folder / f"search-{rows}.db"
        if not path.exists():
            stores.fill_for_search(path, rows)
        return path

    def _session(self, number: int) -> Path:
        """A transcript of a megabyte, of a session of its own."""
        path = self._folder / f"session-{number}.jsonl"
        if not path.exists():
            transcripts.write(path, _MB, seed=number, session=f"{number:08}-0000-4000-8000-000000000001")
        return path

    def _transcript(self, megabytes: int) -> Path:
        path = self._folder / f"{megabytes}.jsonl"
        if not path.exists():
            transcripts.write(path, megabytes * _MB)
        return path

    @classmethod
    def names(cls) -> dict[str, Callable[[Bench], Iterator[Row]]]:
        """The benchmarks by name, in the order of the table."""
        reading = (cls.start, cls.context, cls.hook, cls.reads, cls.upkeep, cls.recall)
        writing = (
            cls.index,
            cls.observe,
            cls.small,
            cls.several,
            cls.memory,
            cls.again,
            cls.background,
            cls.size,
            cls.peers,
        )
        return {each.__name__: each for each in (*reading, *writing)}


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _parse(path: Path) -> Cost:
    return run(sys.executable, "-c", _PARSE, path)


def _text_in(db: Path) -> int:
    """Bytes of text in the messages and rows of a store."""
    kept = 0
    with closing(sqlite3.connect(db)) as connection:
        for table in ("messages", "observations"):
            (sum_,) = connection.execute(f"SELECT sum(length(CAST(text AS BLOB))) FROM {table}").fetchone()
            kept += sum_
    return kept


def _drop_index(db: Path) -> None:
    """Takes the index of words out of a store."""
    with closing(prepare(sqlite3.connect(db, isolation_level=None))) as connection:
        for name in ("message_words", "row_words"):
            for trigger in ("added", "removed"):
                connection.execute(f"DROP TRIGGER {name}_{trigger}")
            connection.execute(f"DROP TABLE {name}")


def _vacuumed(db: Path) -> int:
    """The size of a store in bytes, without free pages."""
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        connection.execute("VACUUM")
    return db.stat().st_size


def _row(what: str, done: Compared, *, aim: float | None = None) -> Row:
    detail = (
        f"{done.cost.cpu * 1000:.0f} ms / {done.other.cpu * 1000:.0f} ms of processor time,"
        f" half of the pairs {done.lowest:.2f} to {done.highest:.2f}; by the clock {done.wall:.2f}"
    )
    return Row(what=what, measured=done.ratio, aim=aim, detail=detail)


def main(arguments: list[str]) -> int:
    """Prints the table; the exit code says whether every aim was met."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=list(Bench.names()), action="append", help="only this benchmark")
    parser.add_argument("--quick", action="store_true", help="few runs, and nothing that takes minutes")
    asked = parser.parse_args(arguments)
    print(machine())
    print(f"{'what':62} {'ratio':>6} {'aim':>6}")
    met = True
    with TemporaryDirectory(prefix="om-bench-", ignore_cleanup_errors=True) as folder:  # a worker may be the last one
        os.environ["XDG_STATE_HOME"] = os.environ["XDG_CACHE_HOME"] = folder
        bench = Bench(Path(folder), is_quick=asked.quick)
        for name, benchmark in Bench.names().items():
            if asked.only and name not in asked.only:
                continue
            for row in benchmark(bench):
                print(row, flush=True)
                met = met and row.is_met
    print("all aims are met" if met else "NOT all aims are met")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
