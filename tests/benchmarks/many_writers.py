"""Many processes that share a store, in a file and on a server: how much they write together, and how long each waits.

Run as `python -m tests.benchmarks.many_writers [--writers 64] [--seconds 10] [--server URL]`. Each process has sessions
of its own. It appends turns, observes them, reads what a pack is made of and searches, in turns, and notes how long
each takes. Without --server, one is started as the tests start theirs, but with writes to disk that are waited for.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

from omcli.base.errors import TryAgain
from omcli.memory.batch import BatchOutcome
from omcli.memory.observation import LogQuery
from omcli.postgres import PostgresStore
from omcli.sqlite import SqliteStore
from tests.material import COUNTER, NOW, row, said, session
from tests.postgres_server import remove, started

COMMON = (
    "berth crane tide gate pilot ledger queue parser schedule buoy manifest ferry lock beacon cargo channel".split()
)
_MESSAGES = 10
"""Number of messages of a turn."""
_WAIT = 60.0
_VOCABULARY = 1_000_000


def rare(chance: random.Random) -> str:
    """Return a word that few texts have: most of them are said once, as in real text."""
    return f"w{int(_VOCABULARY ** chance.random())}"


def open_store(place: str) -> SqliteStore:
    if place.startswith("postgresql:"):
        return PostgresStore.open(place, wait=_WAIT)
    return SqliteStore.open(Path(place), wait=_WAIT)


def work(place: str, me: int, sessions: int, seconds: float) -> None:
    """Write and read until the time is over, and print the durations of each kind of work in milliseconds. Begin when
    told so, because it takes long until many programs have started.
    """
    chance, took, number, again = random.Random(me), defaultdict[str, list[float]](list), 0, 0

    def timed(what: str, since: float) -> None:
        took[what].append(round((time.perf_counter() - since) * 1000, 2))

    with open_store(place) as store:
        print("ready", flush=True)
        sys.stdin.readline()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            name = f"{me}-{chance.randrange(sessions)}"
            texts = [f"{me} {number + at} {' '.join(chance.choices(COMMON, k=40))}" for at in range(_MESSAGES)]
            number += _MESSAGES
            try:
                since = time.perf_counter()
                store.messages.append(session(name), [said(text) for text in texts], counter=COUNTER, now=NOW)
                timed("append", since)
                since = time.perf_counter()
                batch = store.batches.unobserved(name, max_tokens=10_000)
                if batch is not None:
                    rows = [
                        row(
                            me * 10_000_000 + number + at,
                            session=name,
                            sources=(kept.seq,),
                            text=kept.message.text[:80],
                        )
                        for at, kept in enumerate(batch.messages[:3])
                    ]
                    store.batches.record(batch, rows, outcome=BatchOutcome.OBSERVED, now=NOW)
                timed("observe", since)
                since = time.perf_counter()
                list(store.rows.log(LogQuery(session=name, last=200)))
                timed("context", since)
                since = time.perf_counter()
                store.index.match([chance.choice(COMMON), rare(chance)], LogQuery(), most=200)
                timed("recall", since)
            except TryAgain:
                again += 1
    print(json.dumps({"took": took, "again": again}))


def measure(what: str, place: str, *, writers: int, sessions: int, seconds: float) -> None:
    command = [sys.executable, "-m", "tests.benchmarks.many_writers", "--work", place]
    programs = [
        subprocess.Popen(
            [*command, str(me), str(sessions), str(seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for me in range(writers)
    ]
    for program in programs:
        assert program.stdout is not None
        program.stdout.readline()
    for program in programs:
        assert program.stdin is not None
        program.stdin.write("begin\n")
        program.stdin.flush()
    took, again = defaultdict[str, list[float]](list), 0
    for program in programs:
        told = json.loads(program.communicate()[0])
        again += told["again"]
        for name, durations in told["took"].items():
            took[name] += durations
    appended = len(took.get("append", ())) * _MESSAGES
    print(f"{what}, {writers} writers, {seconds:g} s: {appended / seconds:.0f} messages/s, {again} told to try again")
    for name, durations in took.items():
        durations.sort()
        at = [durations[min(len(durations) - 1, int(len(durations) * part))] for part in (0.5, 0.99)]
        print(f"  {name:8} {len(durations):7} times  p50 {at[0]:8.1f} ms  p99 {at[1]:8.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writers", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--sessions", type=int, default=150, help="of each writer")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--server", help="URL of an empty database")
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        place, me, sessions, seconds = asked.work
        work(place, int(me), int(sessions), float(seconds))
        return
    with TemporaryDirectory() as folder:
        server = None if asked.server else started(Path(folder) / "server")
        if server is not None:
            for setting in ("fsync", "full_page_writes"):
                server.run(f"ALTER SYSTEM SET {setting} = on")
            server.run("SELECT pg_reload_conf()")
        try:
            for writers in asked.writers:
                url = server.url_of(server.create()) if server else asked.server
                for what, place in (("file", str(Path(folder) / f"{writers}.db")), ("server", url)):
                    open_store(place).close()
                    measure(what, place, writers=writers, sessions=asked.sessions, seconds=asked.seconds)
        finally:
            if server is not None:
                remove(Path(folder) / "server")


if __name__ == "__main__":
    main()
