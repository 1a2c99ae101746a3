"""A program that works on a store, for tests that need several at once, or one that dies: `program VERB PATH …`."""

from __future__ import annotations

import os
import random
import sqlite3
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from omcli.base.errors import OmError, StaleBatch, TryAgain
from omcli.memory.batch import BatchOutcome
from omcli.memory.ports import Lane
from omcli.postgres import PostgresStore
from omcli.sqlite import SqliteStore
from omcli.sqlite.connection import MIGRATIONS
from omcli.sqlite.lanes import current_process
from tests.material import COUNTER, NOW, row, said, session


def say(*words: object) -> None:
    print(*words, flush=True)


def opened(place: str, *, wait: float = 60, read_only: bool = False) -> SqliteStore:
    """The store in a file or, if the place is a URL, on a server."""
    if place.startswith("postgresql:"):
        return PostgresStore.open(place, wait=wait, read_only=read_only)
    return SqliteStore.open(Path(place), wait=wait, read_only=read_only)


def open_(path: str, migrations: str = "") -> None:
    """Waits for a line on stdin, then opens the store and adds a row to it."""
    say("ready")
    sys.stdin.readline()
    with SqliteStore.open(Path(path), wait=60, migrations=Path(migrations) if migrations else MIGRATIONS) as store:
        store.messages.append(session(f"opener-{os.getpid()}"), [], counter=COUNTER, now=NOW)


def append(path: str, name: str, number: str) -> None:
    """Appends so many messages, each in a transaction of its own."""
    say("ready")
    sys.stdin.readline()
    with opened(path) as store:
        for index in range(int(number)):
            store.messages.append(session(name), [said(f"{name} {index}")], counter=COUNTER, now=NOW)


def observe(path: str, name: str, first_row: str) -> None:
    """Works through a session two messages at a time, one row per message; says what it covered."""
    say("ready")
    sys.stdin.readline()
    rows = count(int(first_row))
    with opened(path) as store:
        while batch := store.batches.unobserved(name, max_tokens=20):
            observed = [row(next(rows), text=kept.message.text, sources=(kept.seq,)) for kept in batch.messages]
            try:
                store.batches.record(batch, observed, outcome=BatchOutcome.OBSERVED, now=NOW)
            except OmError as error:
                say(type(error).__name__)
            else:
                say("covered", *(kept.seq for kept in batch.messages))


def mix(folder: str, me: str) -> None:
    """For each seed on stdin: appends and observes at random in a store that others work on, then says what it did.

    Says `kept` and `covered`, with numbers of messages, and `late` where somebody else was quicker to cover them.
    """
    say("ready")
    rows = count(int(me) * 1_000_000)
    for seed in map(str.strip, sys.stdin):
        chance, told, number = random.Random(f"{me} {seed}"), list[object](), count()
        with SqliteStore.open(Path(folder) / f"{seed}.db", wait=60) as store:
            for _ in range(30):
                name = chance.choice("ab")
                if chance.random() < 0.5:
                    texts = [f"{me} {next(number)}" for _ in range(chance.randint(1, 3))]
                    store.messages.append(session(name), [said(text) for text in texts], counter=COUNTER, now=NOW)
                    told += ["kept", len(texts)]
                elif batch := store.batches.unobserved(name, max_tokens=10 * chance.randint(1, 5)):
                    time.sleep(chance.choice([0, 0, 0.001]))
                    try:
                        observed = [row(next(rows), session=name, sources=(kept.seq,)) for kept in batch.messages]
                        store.batches.record(batch, observed, outcome=BatchOutcome.OBSERVED, now=NOW)
                        told += ["covered", len(observed)]
                    except StaleBatch:
                        told += ["late", len(batch.messages)]
        say(*told)


def work(path: str, name: str, start: str) -> None:
    """Appends and observes without end; says what it has kept once it is kept."""
    with opened(path) as store:
        for number in count(int(start)):
            text = f"{name} {number} " + "x" * (number * 997 % 5000)
            store.messages.append(session(name), [said(text)], counter=COUNTER, now=NOW)
            say("kept", number)
            batch = store.batches.unobserved(name, max_tokens=100)
            assert batch is not None
            rows = [row(number * 1000 + kept.seq, session=name, sources=(kept.seq,)) for kept in batch.messages]
            store.batches.record(batch, rows, outcome=BatchOutcome.OBSERVED, now=NOW)


def persist(path: str, name: str, me: str, number: str) -> None:
    """Appends so many messages and observes what it can, and begins again whenever the store cannot be reached; says
    how often that was.
    """
    say("ready")
    sys.stdin.readline()
    waiting = [f"{me} {index}" for index in range(int(number))]
    rows, failures = count(int(me) * 1_000_000), 0
    while waiting:
        try:
            with opened(path) as store:
                while waiting:
                    store.messages.append(session(name), [said(waiting[0])], counter=COUNTER, now=NOW)
                    waiting.pop(0)
                    if batch := store.batches.unobserved(name, max_tokens=50):
                        observed = [row(next(rows), session=name, sources=(kept.seq,)) for kept in batch.messages]
                        store.batches.record(batch, observed, outcome=BatchOutcome.OBSERVED, now=NOW)
        except TryAgain:
            failures += 1
            time.sleep(0.01)
    say(failures)


def fill(path: str) -> None:
    """Appends until it is not possible any more; says how many messages were kept, and why no more."""
    with opened(path) as store:
        for number in count():
            try:
                store.messages.append(session(), [said(f"{number} " + "x" * 10_000)], counter=COUNTER, now=NOW)
            except OmError as error:
                say(number, type(error).__name__, error.exit_code)
                return


def claim(path: str, name: str) -> None:
    """Claims a session, says so, and stays."""
    with opened(path) as store:
        store.leases.claim(name, Lane.OBSERVE, owner=current_process(), now=NOW, expires_at="2100-01-01T00:00:00.000Z")
        say("claimed")
        time.sleep(300)


def read(path: str) -> None:
    """Says what a reader finds: the number of messages, or the error."""
    try:
        with opened(path, wait=1, read_only=True) as store:
            say(store.sessions.status().messages, "messages")
    except OmError as error:
        say(type(error).__name__, error.exit_code)


def write(path: str) -> None:
    """Says whether a message could be kept, or the error."""
    try:
        with opened(path, wait=1) as store:
            store.messages.append(session(), [said("written")], counter=COUNTER, now=NOW)
            say("written")
    except OmError as error:
        say(type(error).__name__, error.exit_code)


VERBS: dict[str, Callable[..., None]] = {
    "open": open_,
    "append": append,
    "observe": observe,
    "mix": mix,
    "work": work,
    "fill": fill,
    "persist": persist,
    "claim": claim,
    "read": read,
    "write": write,
}

if __name__ == "__main__":
    try:
        VERBS[sys.argv[1]](*sys.argv[2:])
    except sqlite3.Error as error:
        sys.exit(f"an error of SQLite that nobody explained: {error!r}")
