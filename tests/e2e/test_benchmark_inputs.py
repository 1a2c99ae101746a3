"""What the benchmarks make for themselves is what `om` takes for transcripts and stores."""

from __future__ import annotations

from tests.benchmarks import stores, transcripts
from tests.conftest import Om


def test_a_made_transcript_is_read_whole_and_is_the_same_every_time(om: Om) -> None:
    path, again = om.folder / "made.jsonl", om.folder / "again.jsonl"
    for each in (path, again):
        transcripts.write(each, 200_000)
    assert path.read_bytes() == again.read_bytes()
    assert 200_000 <= path.stat().st_size < 300_000
    (report,) = om("observe", "--json", path).document["files"]
    assert (report["format"], report["session_id"]) == ("claude-code", transcripts.SESSION)
    assert set(report["skipped"]) == {"noise"}
    assert report["human_messages"] > 0
    assert report["errors"] > 0
    assert report["tool_calls"] == report["tool_results"] > 10
    assert report["observations"] > 10


def test_a_turn_more_is_taken_in_as_a_turn(om: Om) -> None:
    path = om.folder / "made.jsonl"
    transcripts.write(path, 1)
    before = om("observe", "--json", path).document["files"][0]["new_messages"]
    transcripts.grow(path, seed=2)
    (report,) = om("observe", "--json", path).document["files"]
    assert (report["known_messages"], report["new_messages"] > 1) == (before, True)


def test_a_made_store_has_the_rows_that_were_asked_for(om: Om) -> None:
    file = om.folder / "memory.db"
    stores.fill(file, 1000)
    status = om("status", "--json", "--db", file).document
    assert (status["observations"], status["pending"]) == (1000, 0)
    assert len(om("log", "--session", stores.SESSION, "--db", file).stdout.splitlines()) == 100
    pack = om("context", "--session", stores.SESSION, "--json", "--db", file).document
    assert pack["observations"]
    assert pack["cross"]
    assert pack["messages"]
