"""The input layer: bytes of any kind become records, and one wrong line costs one line."""

from __future__ import annotations

import io
import itertools
import json
import random
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.base.errors import BadInput
from omcli.formats.source import (
    LARGEST_DOCUMENT,
    LONGEST_LINE,
    InputShape,
    Record,
    RecordStream,
    parse_line,
    read_whole,
)
from omcli.memory.transcript import Checkpoint, Reason, Skip

GOOD = b'{"type":"user","n":1}'
PRETTY = (
    b'{\n  "messages": [\n    {"role": "user", "content": "hi"},\n    {"role": "assistant", "content": "ho"}\n  ]\n}\n'
)


def source(content: bytes) -> RecordStream:
    return RecordStream(io.BytesIO(content))


def records(content: bytes) -> list[Record | Skip]:
    return without_pauses(source(content))


def without_pauses(read: RecordStream) -> list[Record | Skip]:
    return [entry for entry in read.records() if not isinstance(entry, Checkpoint)]


def reasons(content: bytes) -> list[Reason]:
    return [entry.reason for entry in records(content) if isinstance(entry, Skip)]


def found(content: bytes) -> list[Record]:
    return [entry for entry in records(content) if isinstance(entry, dict)]


def numbered(count: int) -> list[bytes]:
    return [json.dumps({"n": nth}).encode() for nth in range(count)]


class Pipe(io.RawIOBase):
    """A stream that cannot seek and is made while it is read, like standard input."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks: Iterator[bytes] = iter(chunks)
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._left = memoryview(chunk)
        piece, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(piece)] = piece
        return len(piece)


# Encodings and line ends


def test_a_byte_order_mark_does_not_cost_the_first_line() -> None:
    """F62"""
    assert records(b"\xef\xbb\xbf" + GOOD + b"\n") == [{"type": "user", "n": 1}]


def test_a_byte_order_mark_before_a_document_is_not_part_of_it() -> None:
    """F62"""
    assert source(b"\xef\xbb\xbf" + PRETTY).shape is InputShape.DOCUMENT


def test_windows_line_ends_are_line_ends() -> None:
    """F62"""
    assert records(GOOD + b"\r\n" + GOOD + b"\r\n") == [{"type": "user", "n": 1}] * 2
    assert list(source(b"User: a\r\nAssistant: b\r\n").text_lines()) == ["User: a", "Assistant: b"]


def test_a_byte_that_is_no_utf8_is_replaced_and_the_line_kept() -> None:
    """F60"""
    assert records(b'{"text":"a\xffb"}\n') == [{"text": "a\ufffdb"}]
    assert list(source(b"a\xffb").text_lines()) == ["a\ufffdb"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"\ud83d", "\ufffd"),
        (r"a\udc00b", "a\ufffdb"),
        (r"\uD83D\uDE00", "😀"),
        (r"\ud83d\ud83d\ude00", "\ufffd😀"),
        (r"\\ud83d", r"\ud83d"),
        (r"\\\ud83d", "\\\ufffd"),
        (r"\u00e9", "é"),
    ],
)
def test_half_a_surrogate_pair_becomes_text_that_can_be_stored(written: str, read: str) -> None:
    """F40: a text with half a pair cannot be written as UTF-8."""
    assert records(f'{{"text":"{written}"}}\n'.encode()) == [{"text": read}]
    assert records(f'{{\n"text":"{written}"\n}}\n'.encode()) == [{"text": read}]


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_every_text_a_producer_can_escape_is_read_as_it_was_or_made_storable(said: str) -> None:
    """F40"""
    [entry] = found(json.dumps({"text": said}).encode() + b"\n")
    text = entry["text"]
    assert isinstance(text, str)
    text.encode()
    assert text == said.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# Lines


def test_two_objects_on_one_line_are_two_records() -> None:
    """F63"""
    assert records(b'{"n":1}{"n":2}\n') == [{"n": 1}, {"n": 2}]
    assert records(b'{"n":1} {"n":2}\n{"n":3}\n') == [{"n": 1}, {"n": 2}, {"n": 3}]


@pytest.mark.parametrize("broken", [b'{"n":0,"text":"cut o', b'"}', b'{"n":0,"in":{"n":9}', b"\x00\x00\x00", b"oops"])
def test_an_object_after_a_broken_piece_is_found_again(broken: bytes) -> None:
    """F63: a crash leaves half a record, and the next one is appended to it."""
    assert records(broken + b'{"n":1}{"n":2}\n' + GOOD) == [
        {"n": 1},
        {"n": 2},
        Skip(Reason.NOT_JSON),
        {"type": "user", "n": 1},
    ]


def test_an_object_before_a_broken_piece_is_kept() -> None:
    """F63"""
    assert records(b'{"n":1}{"n":2,"te\n' + GOOD) == [{"n": 1}, Skip(Reason.NOT_JSON), {"type": "user", "n": 1}]


@pytest.mark.parametrize("space", [b"", b" "])
def test_the_inside_of_a_broken_record_is_not_taken_for_records(space: bytes) -> None:
    line = json.dumps(
        {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "hi"}]}}
    ).encode()
    line = line.replace(b" ", space)
    for end in range(1, len(line)):
        assert found(line[:end] + b"\n" + GOOD + b"\n") == [{"type": "user", "n": 1}], line[:end]


def test_a_truncated_last_line_is_left_for_the_next_run() -> None:
    """F59: it is no fault, and gives nothing that would be there twice when the line is whole."""
    line = json.dumps(
        {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "hi"}]}}
    ).encode()
    for end in range(1, len(line)):
        assert records(GOOD + b"\n" + line[:end]) == [{"type": "user", "n": 1}, Skip(Reason.TRUNCATED)], line[:end]
    assert not Reason.TRUNCATED.is_fault
    assert len(found(GOOD + b"\n" + line)) == 2


def test_a_last_line_that_was_never_an_object_is_no_truncation() -> None:
    assert reasons(GOOD + b"\nnot json") == [Reason.NOT_JSON]


def test_a_file_of_one_truncated_line_is_no_prose() -> None:
    """F59"""
    cut = source(b'{"type":"user","message":{"content":"Us')
    assert cut.shape is InputShape.LINES
    assert list(cut.records()) == [Skip(Reason.TRUNCATED)]


def test_what_is_no_object_among_good_lines_is_counted_and_skipped() -> None:
    """F57"""
    lines = numbered(100)
    for at, wrong in zip((80, 60, 40, 0), (b"[1,2]", b'"str"', b"null", b"oops"), strict=True):
        lines.insert(at, wrong)
    entries = records(b"\n".join(lines) + b"\n")
    assert [entry for entry in entries if isinstance(entry, dict)] == [{"n": nth} for nth in range(100)]
    assert sorted(entry.reason for entry in entries if isinstance(entry, Skip)) == [
        Reason.NOT_AN_OBJECT,
        Reason.NOT_AN_OBJECT,
        Reason.NOT_AN_OBJECT,
        Reason.NOT_JSON,
    ]


@pytest.mark.parametrize("first", [b"[1,2]", b'"str"', b"null", b"oops", b'{"n":'])
def test_a_wrong_first_line_does_not_hide_the_others(first: bytes) -> None:
    """F57"""
    assert source(first + b"\n" + b"\n".join(numbered(3))).shape is InputShape.LINES
    assert len(found(first + b"\n" + b"\n".join(numbered(3)))) == 3


def test_a_hundred_thousand_brackets_cost_one_line() -> None:
    """F61"""
    deep = b"[" * 100_000
    for nested in (deep, b'{"a":' + deep, b'{"a":' * 100_000, b'{"a":' + deep + b"]" * 100_000 + b"}"):
        assert records(GOOD + b"\n" + nested + b"\n" + GOOD) == [
            {"type": "user", "n": 1},
            Skip(Reason.TOO_DEEP),
            {"type": "user", "n": 1},
        ]


def test_a_hundred_thousand_brackets_alone_are_no_prose() -> None:
    """F61"""
    assert records(b"[" * 100_000) == [Skip(Reason.TOO_DEEP)]
    assert source(b"[" * 100_000).shape is InputShape.LINES


def test_a_record_beside_a_nest_of_brackets_is_kept() -> None:
    """F61, F63"""
    assert records(GOOD + b"[" * 100_000 + b"\n") == [{"type": "user", "n": 1}, Skip(Reason.TOO_DEEP)]


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_nesting_is_survived_on_later_pythons_too(version: str) -> None:
    """F61: where the C stack is guarded differently."""
    installed = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    python = installed[-1] if installed else shutil.which(f"python{version}")
    # A version manager's shim is there without a Python behind it, too.
    if python is None or subprocess.run([python, "-c", "pass"], capture_output=True, check=False).returncode:
        pytest.skip(f"no Python {version} on this machine")
    script = (
        "import io, json\n"
        "from omcli.formats.source import RecordStream\n"
        "from omcli.formats.values import compact_json\n"
        "nest = lambda deep: b'[' * deep + b']' * deep\n"
        "for deep in (100, 900, 990, 1000, 3000, 10_000, 100_000):\n"
        "    entries = list(RecordStream(io.BytesIO(b'{\"a\":' + nest(deep) + b'}\\n{\"n\":1}\\n')).records())\n"
        "    compact_json(entries[0].get('a') if isinstance(entries[0], dict) else None)\n"
        "    assert entries[-1] == {'n': 1}\n"
        "print(entries[0].reason)\n"
    )
    root = Path(__file__).parents[3]
    ran = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False, cwd=root)
    assert (ran.stdout, ran.stderr) == ("too-deep\n", "")


def test_a_line_of_a_megabyte_is_a_line() -> None:
    """F64"""
    long = json.dumps({"data": "A" * 1_100_000}).encode()
    for content in (long + b"\n" + GOOD, GOOD + b"\n" + long, long):
        assert {len(str(entry.get("data", ""))) for entry in found(content)} <= {0, 1_100_000}
        assert reasons(content) == []
        assert len(found(content)) == content.count(b"{")


def test_a_number_too_long_to_be_read_costs_its_line() -> None:
    assert records(b'{"n":' + b"9" * 5000 + b"}\n" + GOOD) == [Skip(Reason.NOT_JSON), {"type": "user", "n": 1}]


@pytest.mark.parametrize("content", [b"", b"\n", b" \n\r\n\t\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n", b"\n" * 3_000_000])
def test_nothing_is_found_in_nothing(content: bytes) -> None:
    """F56"""
    assert source(content).shape is InputShape.EMPTY
    assert source(content).sample.records == ()
    assert records(content) == []


def test_blank_lines_before_and_between_records_are_passed_over() -> None:
    assert records(b"\n" * 2_000_000 + GOOD + b"\n\n \n" + GOOD + b"\n\n") == [{"type": "user", "n": 1}] * 2


# Shapes


def test_a_pretty_printed_document_is_one_document_whatever_its_name() -> None:
    """F67: some programs write one under `.jsonl`."""
    assert source(PRETTY).shape is InputShape.DOCUMENT
    [document] = found(PRETTY)
    assert source(PRETTY).sample.records == (document,)
    assert not source(PRETTY).sample.is_list


@pytest.mark.parametrize(
    "written",
    [
        b'[{"n":1},{"n":2}]',
        b'[{"n":1},{"n":2}]\n',
        b'[\n{"n":1},\n{"n":2}\n]\n',
        b'[{"n":1}\n,{"n":2}\n]',
        b'[\n  {\n    "n": 1\n  },\n  {\n    "n": 2\n  }\n]\n',
    ],
)
def test_a_list_is_a_document_of_its_elements(written: bytes) -> None:
    assert source(written).shape is InputShape.DOCUMENT
    assert source(written).sample.is_list
    assert source(written).sample.records == ({"n": 1}, {"n": 2})
    assert records(written) == [{"n": 1}, {"n": 2}]


def test_elements_that_are_no_objects_are_counted() -> None:
    """F57"""
    assert records(b'[\n{"n":1},\n[],\n"a",\nnull]') == [{"n": 1}, *[Skip(Reason.NOT_AN_OBJECT)] * 3]


def test_json_lines_are_json_lines_whatever_their_name() -> None:
    """F67: and some programs write them under `.json`."""
    assert source(b"\n".join(numbered(3))).shape is InputShape.LINES
    assert source(GOOD).shape is InputShape.LINES


def test_the_records_of_a_list_that_is_still_being_written_are_rescued() -> None:
    assert found(b'[\n{"n":1},\n{"n":2},\n{"n":3,"te') == [{"n": 1}, {"n": 2}]


def test_prose_with_json_lines_in_it_is_prose() -> None:
    export = b"# A session\n\nUser: what is this?\n\n" + b"\n".join(numbered(3)) + b"\n\nAssistant: JSON {}\n" * 3
    assert source(export).shape is InputShape.TEXT
    assert source(export).sample.text.startswith("# A session")


@pytest.mark.parametrize("prose", [b"[12:03] Ana: hi\n", b"{note} see below\n", b"[[link]] and more\n", b"42\n"])
def test_prose_that_begins_like_json_is_prose(prose: bytes) -> None:
    assert source(prose * 3).shape is InputShape.TEXT


def test_sixty_records_vote_and_no_more() -> None:
    assert len(source(b"\n".join(numbered(500))).sample.records) == 60
    assert len(source(b"[" + b",".join(numbered(500)) + b"]").sample.records) == 60


@pytest.mark.parametrize("content", [b"\n".join(numbered(5)), PRETTY, b"User: hi\n"])
def test_looking_at_the_shape_takes_nothing_from_what_is_read(content: bytes) -> None:
    looked_at = source(content)
    assert looked_at.sample.shape is looked_at.shape
    assert without_pauses(looked_at) == records(content)


# Streams


@pytest.mark.parametrize("content", [b"\n".join(numbered(2000)), PRETTY, b"User: hi\n\nAssistant: ho\n", b""])
@pytest.mark.parametrize("size", [1, 7, 65536])
def test_a_stream_that_cannot_seek_is_read_alike(content: bytes, size: int) -> None:
    pieces = (content[at : at + size] for at in range(0, len(content), size))
    piped = RecordStream(io.BufferedReader(Pipe(pieces)))
    assert piped.sample == source(content).sample
    assert without_pauses(piped) == records(content)


def test_an_unbuffered_stream_that_gives_little_at_a_time_is_read_alike() -> None:
    content = b"\n".join(numbered(50))
    pipe: Any = Pipe(content[at : at + 10] for at in range(0, len(content), 10))
    piped = RecordStream(pipe)
    assert without_pauses(piped) == records(content)


def test_a_first_line_longer_than_what_is_looked_at_is_read_whole() -> None:
    """F64"""
    long = json.dumps({"data": "A" * 3_000_000}).encode()
    piped = RecordStream(io.BufferedReader(Pipe([long, b"\n", GOOD, b"\n"])))
    assert [len(str(entry.get("data", ""))) for entry in piped.sample.records] == [3_000_000]
    assert [type(entry) for entry in piped.records()] == [dict, dict, Checkpoint]


def test_no_line_is_lost_where_what_is_looked_at_ends() -> None:
    line = json.dumps({"data": "A" * 1000}).encode()
    for extra in range(0, len(line) + 2, 97):
        padding = json.dumps({"data": "B" * (extra + 1)}).encode()
        content = padding + b"\n" + (line + b"\n") * 1100
        assert len(content) > 1 << 20
        assert len(found(content)) == 1101
        assert reasons(content) == []


def read_through(source: RecordStream) -> tuple[int, int]:
    """Return the number of records, and the most bytes held while reading them."""
    tracemalloc.start()
    try:
        read = sum(isinstance(entry, dict) for entry in source.records())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return read, peak


def test_memory_is_bounded_by_the_longest_line_not_by_the_input() -> None:
    """50 MB in lines of 100 kB."""
    line = json.dumps({"data": "A" * 100_000}).encode() + b"\n"
    piped = RecordStream(io.BufferedReader(Pipe(line for _ in range(500))))
    read, peak = read_through(piped)
    assert read == 500
    assert peak < 8 << 20, f"{peak:,} bytes were held while 50 MB went by"


def test_memory_is_bounded_where_the_first_lines_are_broken() -> None:
    """Input that begins like a document but is clearly made of lines is not collected."""
    line = json.dumps({"data": "A" * 100_000}).encode() + b"\n"
    piped = RecordStream(io.BufferedReader(Pipe([b'{"cut\n' * 3, *[line] * 200])))
    read, peak = read_through(piped)
    assert read == 200
    assert peak < 8 << 20, f"{peak:,} bytes were held while 20 MB went by"


MEGABYTE = b"x" * (1 << 20)


def too_long(opening: bytes, *, megabytes: int = 80) -> Iterator[bytes]:
    """The pieces of a line that is longer than a line may be, without its end."""
    yield opening
    yield from itertools.repeat(MEGABYTE, megabytes)


def piped(*pieces: Iterable[bytes]) -> RecordStream:
    """A stream of pieces that are made while they are read."""
    return RecordStream(io.BufferedReader(Pipe(itertools.chain(*pieces))))


def test_a_line_that_is_too_long_costs_one_line_wherever_it_is() -> None:
    """XE6, invariant 10; a line of 200 MB takes no more memory than one of 80."""
    end = [b'"}\n']
    places = {
        "first": [too_long(b'{"a":"'), end, [GOOD, b"\n", GOOD, b"\n"]],
        "second": [[GOOD, b"\n"], too_long(b'{"a":"', megabytes=200), end, [GOOD]],
        "last": [[GOOD, b"\n", GOOD, b"\n"], too_long(b'{"a":"')],
    }
    for place, pieces in places.items():
        tracemalloc.start()
        entries = without_pauses(piped(*pieces))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert [entry for entry in entries if isinstance(entry, dict)] == [json.loads(GOOD)] * 2, place
        assert [entry for entry in entries if isinstance(entry, Skip)] == [Skip(Reason.TOO_LONG)], place
        assert peak < 3 * LONGEST_LINE, f"{place}: {peak:,} bytes"


def test_reading_goes_on_after_a_line_that_is_too_long_but_not_within_it() -> None:
    """XE6: a line that is still growing is read again as a whole."""
    for end, checkpoints in ((b"\n", 1), (b"", 0)):
        read = piped([GOOD, b"\n"] * 60, too_long(b'{"a":"'), [end])
        assert sum(isinstance(entry, Checkpoint) for entry in read.records()) == checkpoints
        assert read.end is not None
        assert read.end.offset == 60 * (len(GOOD) + 1) + len(b'{"a":"') + 80 * len(MEGABYTE) + len(end)


@pytest.mark.parametrize("opening", [b"\0", b"User: ", b'{"a":"'])
def test_an_input_of_one_endless_line_is_refused(opening: bytes) -> None:
    """XE6: after so much of it, unless it may be a record with others after it; then at its end."""
    with pytest.raises(BadInput, match="its first line is longer than 64 MB"):
        _ = piped(too_long(opening)).shape


def test_a_text_line_that_is_too_long_is_left_out_and_counted() -> None:
    """XE6."""
    read = piped([b"User: hello\nAssistant: "], too_long(b""), [b"\nUser: bye\n"])
    assert read.shape is InputShape.TEXT
    assert list(read.text_lines()) == ["User: hello", "User: bye"]
    assert read.left_out == 1


def test_a_document_may_be_one_long_line_but_not_endless() -> None:
    """XE6."""
    read = piped([b"["], [b'{"n": "', MEGABYTE, b'"},'] * 70, [GOOD, b"]"])
    assert read.shape is InputShape.DOCUMENT
    assert sum(isinstance(entry, dict) for entry in read.records()) == 71
    with pytest.raises(BadInput, match="it is larger than 256 MB"):
        _ = piped([b"["], itertools.repeat(b'{"n": "' + MEGABYTE)).shape


def test_what_is_read_as_a_whole_has_a_limit() -> None:
    """XE6: reading stops there; the rest of an endless input is not asked for."""
    pieces = iter(itertools.repeat(MEGABYTE, 1000))
    with pytest.raises(BadInput, match="it is larger than 256 MB"):
        read_whole(io.BufferedReader(Pipe(pieces)))
    assert len(list(pieces)) > 1000 - (LARGEST_DOCUMENT >> 20) - 10


# Anything at all


@given(st.binary(max_size=300))
def test_random_bytes_never_raise(content: bytes) -> None:
    """F60"""
    entries = records(content)
    assert all(isinstance(entry, dict | Skip) for entry in entries)
    assert source(content).sample.shape in InputShape
    list(source(content).text_lines())


@given(st.text(alphabet='{}[]",:\\ \n1atru', max_size=200))
def test_random_json_like_text_never_raises(content: str) -> None:
    entries = records(content.encode())
    assert all(isinstance(entry, dict | Skip) for entry in entries)


@given(st.lists(st.one_of(st.just(GOOD), st.binary(max_size=60).filter(lambda junk: b"\n" not in junk)), max_size=30))
def test_no_good_line_is_lost_next_to_garbage(lines: list[bytes]) -> None:
    """F57, F60"""
    # The kind of the whole is for the first lines to tell; here it is told.
    content = (GOOD + b"\n") * 40 + b"\n".join(lines) + b"\n"
    good = [entry for entry in records(content) if entry == {"type": "user", "n": 1}]
    assert len(good) >= 40 + lines.count(GOOD)


def test_mutated_real_looking_lines_never_raise_and_cost_only_themselves() -> None:
    """F57: 300 lines, each with a byte changed, cut or doubled."""
    chance = random.Random(7)
    line = json.dumps({"type": "user", "message": {"content": [{"text": "a {b} [c] é 😀"}]}, "at": 1.5}).encode()
    for _ in range(300):
        at = chance.randrange(len(line))
        mutated = chance.choice(
            [line[:at] + bytes([chance.randrange(256)]) + line[at + 1 :], line[:at], line[:at] + line[at:] * 2]
        ).replace(b"\n", b" ")
        good = [entry for entry in records(GOOD + b"\n" + mutated + b"\n" + GOOD + b"\n") if entry == json.loads(GOOD)]
        assert len(good) == 2, mutated


def test_one_line_costs_one_fault_at_most() -> None:
    assert [entry for entry in parse_line(b'oops {"n":1} oops {"n":2} [1] oops') if isinstance(entry, Skip)] == [
        Skip(Reason.NOT_JSON)
    ]


def test_a_long_line_of_broken_pieces_is_given_up_in_good_time() -> None:
    """If every piece were tried, a line of a megabyte would take minutes."""
    pieces = b'{"a" ' * 200_000
    assert reasons(pieces + b"\n" + GOOD) == [Reason.NOT_JSON]
    assert len(found(pieces + b"\n" + GOOD)) == 1


def test_only_what_may_have_been_missed_is_a_fault() -> None:
    assert {reason for reason in Reason if reason.is_fault} == {
        Reason.NOT_JSON,
        Reason.TOO_DEEP,
        Reason.TOO_LONG,
        Reason.NOT_AN_OBJECT,
        Reason.UNKNOWN_TYPE,
        Reason.MALFORMED,
    }


def test_the_layer_is_light_to_import() -> None:
    script = (
        "import sys, omcli.formats.source; print(sorted({'rich', 'tiktoken', 'typer', 'sqlite3'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
