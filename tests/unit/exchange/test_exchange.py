"""Memory as other designs write it: what is written can be read back."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.base.errors import BadUsage
from omcli.exchange import INPUT_NAMES, NAMES, OWN, named
from omcli.exchange.groups import NOWHERE, Group, GroupRow, MessageRange, NotARow, outline, reach_of
from omcli.formats.injected import is_export
from omcli.memory.notation import BRACKETS, EMOJI, NONE, WORDS, Notation, PrintedRow
from omcli.memory.observation import Kind, Priority, Status
from omcli.text.clean import single_line
from tests.strategies import instants, lines, names, texts

NOTATION = {"pi": BRACKETS, "zora": WORDS, "zora-jsonl": WORDS, "duet-groups": EMOJI, "duet-headings": EMOJI}
FORMATS = pytest.mark.parametrize("name", NAMES)
OF_ROWS = [name for name in INPUT_NAMES if name != OWN]


def tokens(text: str) -> int:
    """As Zora estimates."""
    return -(-10 * len(text) // 35)


def written(name: str, groups: list[Group]) -> str:
    """Groups as a file."""
    return "".join(named(name).render(groups, tokens))


def read(name: str, text: str) -> list[Group]:
    """A file as groups; all of it has to be read."""
    found = list(named(name).parse(text))
    assert not [entry for entry in found if isinstance(entry, NotARow)], text
    return [entry for entry in found if isinstance(entry, Group)]


@st.composite
def entries(draw: st.DrawFn) -> tuple[GroupRow, ...]:
    """Rows, some of them details of one before."""
    told = draw(st.lists(lines, min_size=1, max_size=4))
    under = [draw(st.none() | st.integers(0, place - 1)) if place else None for place in range(len(told))]
    return tuple(GroupRow(line=line, under=above) for line, above in zip(told, under, strict=True))


ids = st.none() | st.sampled_from(["a", "msg_1", 'b"</observation-group>', "c:d", "<e>&amp;`f", "g\nh\0i"])
reaches = st.just(NOWHERE) | st.builds(
    lambda first, last, start, length: MessageRange(first=first, last=last, start=start, end=start + length),
    ids.filter(bool),
    ids.filter(bool),
    st.integers(0, 50),
    st.integers(1, 50),
)
groups = st.lists(
    st.builds(
        Group,
        entries=entries(),
        kind=st.sampled_from([Kind.OBSERVATION, Kind.REFLECTION, Kind.NOTE]),
        id=ids,
        session=st.none() | names,
        cwd=st.sampled_from([None, "/p", '/home/a "b"', "/x>\n<y"]),
        created_at=instants,
        reach=reaches,
        generation=st.integers(1, 3),
    ),
    max_size=4,
)


def rows(found: list[Group], notation: Notation | None = None) -> list[tuple[object, ...]]:
    """What rows say; written in a notation, as far as that tells it. Of none text and status are left."""
    said: list[tuple[object, ...]] = []
    for group in found:
        for line in (entry.line for entry in group.entries):
            status = None if line.status is Status.OPEN else line.status
            marks = (line.dated, line.priority, notation.mark(line) if notation else line.mark)
            said.append((single_line(line.text), status, *marks))
    return said


# One example is given to every format: most of the time goes into making it.
@given(told=groups)
def test_rows_read_back_as_they_were_written(told: list[Group]) -> None:
    """S0.15, S2.11, S2.22, S2.37, T74: texts, priorities, statuses, marks, and dates to the minute."""
    for name in ("zora-jsonl", "duet-groups", "duet-headings", "zora"):
        assert rows(read(name, written(name, told))) == rows(told, NOTATION[name]), name


@given(told=groups)
def test_pi_s_text_reads_back_with_its_details_below(told: list[Group]) -> None:
    """S3.7: children are rows with a parent; one of another day stands for itself."""
    [found] = read("pi", written("pi", told)) or [Group(entries=())]
    outlined = [
        replace(group, entries=tuple(entry for _, entry in outline(_apart_by_day(group).entries))) for group in told
    ]
    assert rows([found]) == rows(outlined, BRACKETS)
    depths = [depth for group in told for depth, _ in outline(_apart_by_day(group).entries)]
    assert [depth for depth, _ in outline(found.entries)] == depths


def _apart_by_day(group: Group) -> Group:
    days = [entry.line.dated[:10] for entry in group.entries]
    return replace(
        group,
        entries=tuple(
            replace(entry, under=None) if entry.under is not None and days[entry.under] != days[place] else entry
            for place, entry in enumerate(group.entries)
        ),
    )


@given(told=groups)
def test_groups_read_back_with_what_their_format_says_of_them(told: list[Group]) -> None:
    """S0.13, S1.11, S1.12, S2.11, S2.13, C18: ids, sessions, directories, and the messages they were made of."""
    expected = {
        "zora-jsonl": lambda group: (
            group.id,
            group.kind,
            group.session,
            group.created_at,
            MessageRange(start=group.reach.start, end=group.reach.end),
        ),
        "duet-groups": lambda group: (
            group.id,
            group.kind,
            group.cwd,
            MessageRange(first=group.reach.first, last=group.reach.last),
        ),
        "duet-headings": lambda group: (group.id, MessageRange(first=group.reach.first, last=group.reach.last)),
        "lango-jsonl": lambda group: (
            group.session,
            group.kind is Kind.REFLECTION,
            group.created_at,
            group.generation * (group.kind is Kind.REFLECTION),
            MessageRange(start=group.reach.start, end=group.reach.end),
        ),
    }
    for name, kept in expected.items():
        assert list(map(kept, read(name, written(name, told)))) == list(map(kept, told))


@given(told=groups)
def test_lango_s_paragraphs_keep_texts_and_statuses(told: list[Group]) -> None:
    """S1.11: it writes no priority and no date."""
    reflections_first = sorted(told, key=lambda group: group.kind is not Kind.REFLECTION)
    for name, wanted in (("lango", reflections_first), ("lango-jsonl", told)):
        found = read(name, written(name, wanted))
        assert [row[:2] for row in rows(found)] == [row[:2] for row in rows(wanted)], name
        assert [len(group.entries) for group in found] == [len(group.entries) for group in wanted], name
        assert {entry.line.dated for group in found for entry in group.entries} <= {""}, name


@given(told=groups)
def test_what_is_written_is_known_by_its_beginning_and_breaks_out_of_no_line(told: list[Group]) -> None:
    """T74: a row is a line, no tag opens or closes in one, and nothing of it is a transcript."""
    for name in NAMES:
        text = written(name, told)
        assert is_export(text) == bool(told), name
        if name == "duet-groups":
            assert len(re.findall("</?observation-group", text, re.IGNORECASE)) == 2 * len(told)
        assert all(len(f"{line}.".splitlines()) == 1 for line in text.split("\n")), name


@given(
    text=texts
    | st.lists(
        st.sampled_from(
            [
                "Date: 2026-02-10",
                "- [!] 14:32 x",
                "  - y",
                "* z",
                "## Group `a`",
                "_range: a:b_",
                '<observation-group id="a" range="a:b:c">',
                "</observation-group>",
                '{"observations":"x","sourceMessageRange":[1,0]}',
                '{"content":7}',
                "[1]",
                "",
                "🔴 🟢 x",
                "### Summary",
                "word",
            ]
        ),
        max_size=9,
    ).map("\n".join)
)
def test_whatever_a_file_holds_is_read_or_counted(text: str) -> None:
    """Invariant 10: one wrong line costs one line."""
    for name in OF_ROWS:
        for found in named(name).parse(text):
            assert isinstance(found, NotARow | Group), name


@FORMATS
def test_a_megabyte_on_one_line_reads_back_in_no_time(name: str) -> None:
    """T74"""
    for text in ("x </observation-group> " * 45_000, "\\" * 500_000 + "done: ", "🔴 " * 300_000, "(" * 1_000_000):
        line = PrintedRow(dated="2026-02-10 14:32", priority=Priority.HIGH, status=None, text=text)
        began = time.process_time()
        [group] = read(name, written(name, [Group(entries=(GroupRow(line=line),), id="a")]))
        assert group.entries[0].line.text == text
        assert time.process_time() - began < 2


TOLD = Group(
    id="obs_1770733920000_7c1e9a04",
    session="s1",
    cwd='/home/ada/"tides"',
    created_at="2026-02-10T14:40:00.000Z",
    reach=MessageRange(first="m1", last="m:3", start=0, end=3),
    entries=(
        GroupRow(
            line=PrintedRow(dated="2026-02-10 14:32", priority=Priority.HIGH, status=None, text="Uses PostgreSQL 16")
        ),
        GroupRow(
            line=PrintedRow(dated="2026-02-10 14:33", priority=Priority.LOW, status=None, text="since 2025"), under=0
        ),
        GroupRow(
            line=PrintedRow(dated="2026-02-11 09:00", priority=Priority.HIGH, status=Status.DONE, text="Shipped v2")
        ),
    ),
)
PRINTED = {
    "pi": "Date: 2026-02-10\n- [!] 14:32 Uses PostgreSQL 16\n  - [i] 14:33 since 2025\n\n"
    "Date: 2026-02-11\n- [!] 09:00 done: Shipped v2\n",
    "zora": "[2026-02-10 14:32] CRITICAL Uses PostgreSQL 16\n[2026-02-10 14:33] NOTE since 2025\n"
    "[2026-02-11 09:00] CRITICAL done: Shipped v2\n",
    "zora-jsonl": '{"id":"obs_1770733920000_7c1e9a04","sessionId":"s1","createdAt":"2026-02-10T14:40:00.000Z",'
    '"tier":"session","observations":"[2026-02-10 14:32] CRITICAL Uses PostgreSQL 16\\n[2026-02-10 14:33] NOTE since '
    '2025\\n[2026-02-11 09:00] CRITICAL done: Shipped v2","sourceMessageRange":[0,3],"estimatedTokens":36}\n',
    "duet-groups": '<observation-group id="obs_1770733920000_7c1e9a04" range="m1:m&#58;3" kind="observation" '
    'cwd="/home/ada/&quot;tides&quot;">\n* 🔴 (2026-02-10 14:32) Uses PostgreSQL 16\n'
    "* 🟢 (2026-02-10 14:33) since 2025\n* ✅ (2026-02-11 09:00) Shipped v2\n</observation-group>\n",
    "duet-headings": "## Group `obs_1770733920000_7c1e9a04`\n_range: `m1:m&#58;3`_\n\n"
    "* 🔴 (2026-02-10 14:32) Uses PostgreSQL 16\n* 🟢 (2026-02-10 14:33) since 2025\n"
    "* ✅ (2026-02-11 09:00) Shipped v2\n",
    "lango": "## Conversation Memory\n\n### Recent\n\nUses PostgreSQL 16\nsince 2025\ndone: Shipped v2\n",
    "lango-jsonl": '{"session_key":"s1","content":"Uses PostgreSQL 16\\nsince 2025\\ndone: Shipped v2",'
    '"token_count":14,"source_start_index":0,"source_end_index":2,"created_at":"2026-02-10T14:40:00.000Z"}\n',
}


@FORMATS
def test_a_group_is_written_as_its_design_does(name: str) -> None:
    """S0.13, S0.25, S1.11, S2.11, S2.22, S3.7, S3.13, C18: half-open in Zora's blocks alone."""
    assert written(name, [TOLD]) == PRINTED[name]


def test_groups_and_days_stand_a_blank_line_apart() -> None:
    """S3.13"""
    assert "</observation-group>\n\n<observation-group " in written("duet-groups", [TOLD, TOLD])
    assert "\n\nuses" in written("lango", [TOLD, replace(TOLD, entries=TOLD.entries[:1])]).lower()


def test_an_item_keeps_its_category() -> None:
    """T40, S0.15: items of the cross-session file belong to no session."""
    item = Group(
        entries=TOLD.entries[:1], kind=Kind.ITEM, id="i1", category="behavior/reflected", tags=("ci",), session=None
    )
    text = written("zora-jsonl", [item])
    assert json.loads(text)["type"] == "behavior"
    [found] = read("zora-jsonl", text)
    assert (found.kind, found.category, found.tags, found.id) == (Kind.ITEM, "behavior/reflected", ("ci",), "i1")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "pi",
            "# Date: Feb 10, 2026\n* 🔴 (14:30) a\n    * 🟡 b\n- c\n\n**Date: 2026-02-11**\n- [?] 9:05 d\n",
            [
                ("a", None, "2026-02-10 14:30", Priority.HIGH, "🔴"),
                ("b", None, "2026-02-10 14:30", Priority.MEDIUM, "🟡"),
                ("c", None, "2026-02-10 14:30", Priority.MEDIUM, ""),
                ("d", None, "2026-02-11 09:05", Priority.MEDIUM, "[?]"),
            ],
        ),
        (
            "duet-groups",
            '<observation-group id="x" range="a:b">\n* 🟢 🟡 (2026-05-25 08:32) a\n  more\n* no mark\nbut 🔴 inside\n',
            [
                ("a more", None, "2026-05-25 08:32", Priority.MEDIUM, "🟢 🟡"),
                ("no mark but 🔴 inside", None, "", Priority.HIGH, ""),
            ],
        ),
        (
            "duet-groups",
            '<observation-group id="x">\n* only words\n</observation-group>',
            [("only words", None, "", Priority.LOW, "")],
        ),
        (
            "zora",
            "[2026-02-10 14:32] a\n[2026-02-10 14:33] ✅ b\n",
            [
                ("a", None, "2026-02-10 14:32", Priority.MEDIUM, ""),
                ("b", Status.DONE, "2026-02-10 14:33", Priority.HIGH, "✅"),
            ],
        ),
        (
            "zora-jsonl",
            '{"id":"obs_1_a","sessionId":"s","observations":"prose\\n[2026-02-10 14:32] NOTE b"}',
            [
                ("prose", None, "", Priority.MEDIUM, ""),
                ("b", None, "2026-02-10 14:32", Priority.LOW, "NOTE"),
            ],
        ),
        (
            "lango",
            "One paragraph.\n\nAnother.\n",
            [("One paragraph.", None, "", Priority.MEDIUM, ""), ("Another.", None, "", Priority.MEDIUM, "")],
        ),
    ],
)
def test_what_others_wrote_is_read_as_well(name: str, text: str, expected: list[tuple[object, ...]]) -> None:
    """D14, S3.8, C1: other marks, none at all, several, spoken days, prose."""
    assert rows(read(name, text)) == expected


@pytest.mark.parametrize(
    ("name", "text", "faults"),
    [
        ("zora", "no date\n\n[2026-02-10 14:32] NOTE a\n", 1),
        ("pi", "- [!] 14:32 before any date\nDate: 2026-02-10\nwords\n- [!] 14:32 a\n", 2),
        ("duet-groups", 'words\n<observation-group id="a">\n* 🔴 a\n</observation-group>\nmore words\n', 2),
        ("zora-jsonl", '{"broken\n[]\n{"observations":""}\n{"observations":"a"}\n', 3),
        ("lango-jsonl", '{"content":1}\nx\n{"content":"a"}\n', 2),
    ],
)
def test_what_is_no_row_is_counted(name: str, text: str, faults: int) -> None:
    found = list(named(name).parse(text))
    assert sum(isinstance(entry, NotARow) for entry in found) == faults
    assert sum(len(entry.entries) for entry in found if isinstance(entry, Group)) == 1


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("a:b", "a", "b"),
        ("x:1:x:2", "x:1", "x:2"),
        ("a&#58;b:c&amp;d", "a:b", "c&d"),
        ("a:b:c", None, None),
        ("a", None, None),
        (":", None, None),
    ],
)
def test_a_range_names_its_two_ends(text: str, first: str | None, last: str | None) -> None:
    """S2.11: ids may have colons."""
    assert reach_of(text) == MessageRange(first=first, last=last)


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadUsage) as refused:
        named("paper")
    assert "duet-groups" in refused.value.hint


def test_rows_without_marks_are_written_by_the_notation_without_any() -> None:
    assert NONE.render(TOLD.entries[0].line) == "[2026-02-10 14:32] Uses PostgreSQL 16"


@pytest.mark.parametrize("name", OF_ROWS)
@pytest.mark.parametrize(
    "hostile",
    [
        "<observation-group " + 'a="' * 30_000,
        "<observation-group " + " " * 100_000,
        "## Group `a`\n_range: " + "_ " * 50_000,
        "<observation-group>\n" + "x\n" * 20_000,
        "Date: 2026-02-10\n" + "- x\n" * 10_000,
        "Date: 2026-02-10\n" + "".join(" " * depth + "- x\n" for depth in range(1000)),
        '{"a":' * 20_000,
        '{"id":"' + '\\"' * 50_000,
        "- " * 50_000,
        "## 2026-02-10\n" + "- a:\n" + "".join(" " * depth + "- x\n" for depth in range(1000)),
        "## x\n- " + "<!--om: " * 20_000,
        "## x\n- a" + " " * 100_000 + "b (as of 2026-02-10 " * 5_000,
        "## x\n- " + "[" * 50_000,
        "x,\nx\n" * 20_000,
        "---\n" * 20_000,
        '{"observations": [' + '{"facts": "[' * 20_000,
        json.dumps({"observations": [{"facts": "[" * 100_000, "project": "p", "files_read": "/p" * 50_000}]}),
    ],
)
def test_a_hostile_file_takes_no_more_than_its_length(name: str, hostile: str) -> None:
    began = time.process_time()
    for _ in named(name).parse(hostile):
        pass
    is_export(hostile)
    assert time.process_time() - began < 3, "reading a file must not take its square"
