"""The context pack: its promises for any memory, any budget, any counter and any form."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.formats.injected import without_injected
from omcli.memory.message import KeptMessage, Message, Role, TokenCounter
from omcli.memory.notation import PREAMBLE
from omcli.memory.observation import Kind, Observation, Priority, Status, Type
from omcli.memory.session import Session
from omcli.pack.budget import Budgets, Tier, budgets
from omcli.pack.context_pack import Choice, ContextPack, pack
from omcli.pack.cross_session import HALF_LIFE, TIME_CONSTANT, each_once, is_shared
from omcli.pack.document import document as json_document
from omcli.pack.layouts import PackFormat
from omcli.pack.layouts.layout import LOOKING_UP
from omcli.pack.selection import repeated
from omcli.tokenizers import Counter
from omcli.tokenizers import counter as named_counter
from tests.strategies import NASTY, examples, instants, kept_messages, observations, sessions
from tests.unit.pack.test_cross_session import NOW, ROW
from tests.unit.pack.test_tail import call, kept, result, user

SESSION = Session(id="mine", agent="claude-code", cwd="/p")
APPROXIMATE = cast(Counter, named_counter())
COUNTERS: tuple[TokenCounter, ...] = (
    APPROXIMATE,
    Counter(name="chars-4", count=lambda text: -(-len(text) // 4)),
    Counter(name="words", count=lambda text: len(text.split())),
    # More than the sum of its parts: what was chosen line by line is always too much.
    Counter(name="hostile", count=lambda text: len(text) ** 2 // 400),
    # Neither more nor less, but anything.
    Counter(name="fickle", count=lambda text: sum(text.encode("utf-8", "surrogatepass")) % 997),
)
BLOCKS = (PackFormat.TEXT, PackFormat.MARKDOWN, PackFormat.XML)


def packed(
    own: Sequence[Observation] = (),
    *,
    cross: Sequence[Observation] = (),
    messages: Sequence[Message] = (),
    total: int | None = None,
    to: PackFormat = PackFormat.TEXT,
    counter: TokenCounter = APPROXIMATE,
    now: str = NOW,
    choice: Choice = Choice(),  # noqa: B008
) -> ContextPack:
    """A pack of the session `mine`."""
    return pack(
        session=SESSION,
        cross=cross,
        observations=own,
        messages=kept(*messages),
        budgets=budgets(total=total),
        counter=counter,
        now=now,
        to=to,
        choice=choice,
    )


def mine(text: str, *, number: int = 1, minute: int = 0, **columns: object) -> Observation:
    """A row of the session `mine`."""
    row = replace(
        ROW,
        id=f"0198c0de-0000-7000-8000-{number:012x}",
        session="mine",
        text=text,
        observed_at=f"2026-02-{10 + minute // 1440:02}T{minute // 60 % 24:02}:{minute % 60:02}:00.000Z",
    )
    return replace(row, **columns)  # type: ignore[arg-type]


def shown_in(printed: str) -> list[str]:
    """The lines of a pack."""
    return printed.splitlines()


def with_own_ids(memory: dict[str, Any]) -> dict[str, Any]:
    """A memory as a store has it: a row of another session is none of this one."""
    own = {row.id for row in memory["observations"]}
    return {**memory, "cross": tuple(row for row in memory["cross"] if row.id not in own)}


memories = st.fixed_dictionaries(
    {
        "session": st.none() | sessions,
        "cross": st.lists(observations(), max_size=8, unique_by=lambda row: row.id).map(tuple),
        "observations": st.lists(observations(session=st.just("s1")), max_size=8, unique_by=lambda row: row.id).map(
            tuple
        ),
        "messages": kept_messages(max_size=8),
        "pending": st.integers(0, 10**6),
        "now": instants,
    }
).map(with_own_ids)
any_budgets = st.one_of(
    st.integers(0, 5000).map(lambda total: budgets(total=total)),
    st.builds(
        Budgets,
        total=st.integers(-5, 5000),
        cross=st.integers(-5, 2000),
        session=st.integers(-5, 2000),
        tail=st.integers(-5, 2000),
    ),
)
forms = st.sampled_from(PackFormat)
counts = st.none() | st.integers(0, 5)
choices = st.builds(
    Choice,
    reflections=counts,
    others=counts,
    is_recent=st.booleans(),
    is_descending=st.booleans(),
    order=st.permutations(list(Tier)).map(tuple),
    fading=st.sampled_from([HALF_LIFE, TIME_CONSTANT]),
)


@given(memory=memories, most=any_budgets, counter=st.sampled_from(COUNTERS), to=forms, choice=choices)
@examples(200)
def test_a_budget_is_a_promise(
    memory: dict[str, object], most: Budgets, counter: TokenCounter, to: PackFormat, choice: Choice
) -> None:
    """F50 C12: no memory, budget, counter, form or preset makes a pack exceed its budget, or a tier its own."""
    made = pack(**memory, budgets=most, counter=counter, to=to, choice=choice)  # type: ignore[arg-type]
    if made.printed:
        assert counter.text(made.printed) <= max(0, most.total)
    assert all(made.tokens[tier] <= most.limits[tier] for tier in Tier)


@given(
    memory=memories,
    most=any_budgets,
    counter=st.sampled_from(COUNTERS),
    to=forms,
    choice=choices,
    shares=st.lists(st.floats(0.4, 1), min_size=16, max_size=16),
)
@examples(200)
def test_a_pack_for_a_task_keeps_its_budget_and_tells_nothing_twice(
    memory: dict[str, Sequence[Observation]],
    most: Budgets,
    counter: TokenCounter,
    to: PackFormat,
    choice: Choice,
    shares: list[float],
) -> None:
    """F50, S2.35: whichever rows match, no budget is exceeded, and no row says what the tail or another row says."""
    rows = [*memory["cross"], *memory["observations"]]
    choice = replace(choice, matches={row.id: share for row, share in zip(rows[::2], shares, strict=False)})
    made = pack(**memory, budgets=most, counter=counter, to=to, choice=choice)  # type: ignore[arg-type]
    if made.printed:
        assert counter.text(made.printed) <= max(0, most.total)
    assert all(made.tokens[tier] <= most.limits[tier] for tier in Tier)
    if choice.matches:
        shown = [*made.cross, *made.observations]
        assert not repeated(shown, made.turns, choice.matches)
        assert len({row.text for row in shown}) == len(shown)
    why = replace(choice, is_explained=True)
    explained = pack(**memory, budgets=most, counter=counter, to=to, choice=why)  # type: ignore[arg-type]
    assert explained.printed == made.printed
    chosen = [each.row for each in explained.reasons if each.is_chosen]
    assert sorted(row.id for row in chosen) == sorted(row.id for row in (*made.cross, *made.observations))


@pytest.mark.parametrize("to", PackFormat)
@pytest.mark.parametrize("counter", [APPROXIMATE, named_counter("chars-4")], ids=lambda each: each.name)
def test_no_budget_is_exceeded_by_a_single_token(counter: TokenCounter, to: PackFormat) -> None:
    """F50 C12: every budget from none to more than enough, so that each way of being just too long occurs."""
    own = [mine(f"We decided that pier {number} is painted blue", number=number, minute=number) for number in range(6)]
    messages = [user(f"Please look at pier {number} once more") for number in range(4)]
    for total in range(250):
        made = packed(own, cross=[ROW], messages=messages, total=total, to=to, counter=counter)
        assert not made.printed or counter.text(made.printed) <= total


@given(memory=memories, most=any_budgets, counter=st.sampled_from(COUNTERS), to=forms)
def test_the_same_memory_gives_the_same_bytes(
    memory: dict[str, object], most: Budgets, counter: TokenCounter, to: PackFormat
) -> None:
    """F52: printed twice, a pack is the same to the byte."""
    first, second = (pack(**memory, budgets=most, counter=counter, to=to) for _ in range(2))  # type: ignore[arg-type]
    assert first == second


@given(memory=memories, later=instants, to=forms)
def test_the_time_of_day_changes_nothing_that_has_room(memory: dict[str, object], later: str, to: PackFormat) -> None:
    """F52, XB10: dates are absolute, but for the age of the last messages; `now` ranks what gives way."""
    roomy = budgets(total=10**6)
    first = pack(**memory, budgets=roomy, counter=APPROXIMATE, to=to)  # type: ignore[arg-type]
    second = pack(**memory | {"now": later}, budgets=roomy, counter=APPROXIMATE, to=to)  # type: ignore[arg-type]
    assert AGE.sub("", first.printed) == AGE.sub("", second.printed)


AGE = re.compile(r"(?<=Last [Mm]essages), [0-9]+ (?:day|week|month|year)s? ago")


@given(memory=memories, to=forms)
def test_everything_is_shown_where_there_is_room(memory: dict[str, object], to: PackFormat) -> None:
    """S0.1: all three tiers; hidden rows, the current session's and others' tasks are no part of the cross tier."""
    made = pack(**memory, budgets=budgets(total=10**6), counter=APPROXIMATE, to=to)  # type: ignore[arg-type]
    cross, own = memory["cross"], memory["observations"]
    assert isinstance(cross, tuple)
    assert isinstance(own, tuple)
    shared = [row for row in cross if is_shared(row, session=made.session)]
    assert list(made.cross) == each_once(shared, besides=[row for row in own if row.is_visible])
    assert len(made.observations) == sum(row.is_visible for row in own)
    assert made.left_out == 0


@given(memory=memories, most=any_budgets, to=forms)
def test_a_pack_that_is_read_again_leaves_nothing_behind(
    memory: dict[str, object], most: Budgets, to: PackFormat
) -> None:
    """S2.9 F45 T74: nothing inside a pack closes it. A list of the last messages and no row is a conversation."""
    made = pack(**memory, budgets=most, counter=APPROXIMATE, to=to)  # type: ignore[arg-type]
    is_list = to in (PackFormat.MESSAGES, PackFormat.ANTHROPIC)
    printed = made.printed if made.cross or made.observations or not is_list else ""
    assert not without_injected(printed)
    assert without_injected(f"before\n{printed}after") == ("before\n\nafter" if printed else "before\nafter")


@given(memory=memories, most=any_budgets)
def test_the_xml_is_well_formed_and_holds_the_texts(memory: dict[str, object], most: Budgets) -> None:
    """S0.1: a tier per element, nothing breaks out of its element."""
    made = pack(**memory, budgets=most, counter=APPROXIMATE, to=PackFormat.XML)  # type: ignore[arg-type]
    if not made.printed:
        return
    root = ET.fromstring(made.printed)
    assert root.tag == "om-memory"
    assert len(root.findall("cross/row")) == len(made.cross)
    assert len(root.findall("session/row")) == len(made.observations)
    assert len(root.findall("tail/message")) == len(made.turns)
    if most.total >= 600 and made.session:
        assert root.get("session") == made.session


@given(memory=memories, most=any_budgets)
def test_the_json_is_one_document_without_nulls(memory: dict[str, object], most: Budgets) -> None:
    """S0.1 XB6: the text that a model is given, its tokens, and its rows with the columns of the log; optional fields
    omitted, never null.
    """
    made = pack(**memory, budgets=most, counter=APPROXIMATE, to=PackFormat.JSON)  # type: ignore[arg-type]
    printed = json_document(made)
    document = json.loads(printed, parse_constant=pytest.fail)
    text = pack(**memory, budgets=most, counter=APPROXIMATE)  # type: ignore[arg-type]
    assert document["text"] == text.printed
    assert len(document["observations"]) == len(text.observations)
    assert document["schema"] == 1
    assert document.get("session") == made.session
    assert document["counter"] == "o200k-approx"
    assert document["budget"] == most.total
    assert document["pending"] == memory["pending"]
    total = APPROXIMATE.text(text.printed) if text.printed else 0
    assert total <= max(0, most.total)
    assert document["tokens"] == {"total": total} | {str(tier): made.tokens[tier] for tier in Tier}
    assert [row["text"] for row in document["cross"]] == [row.text for row in made.cross]
    assert [row["id"] for row in document["observations"]] == [row.id for row in made.observations]
    assert [one["role"] for one in document["messages"]] == [turn.message.role for turn in made.turns]
    assert "null" not in re.sub(r'"(\\.|[^"\\])*"', "", printed)


@given(memory=memories, most=any_budgets)
def test_every_tool_message_follows_its_call(memory: dict[str, object], most: Budgets) -> None:
    """T57 S1.14: an agent can go on from the messages; calls are answered at once, except at the very end."""
    made = pack(**memory, budgets=most, counter=APPROXIMATE, to=PackFormat.MESSAGES)  # type: ignore[arg-type]
    if not made.printed:
        return
    asked: list[str] = []
    for entry in json.loads(made.printed):
        if entry["role"] == "tool":
            assert entry["tool_call_id"] in asked
            asked.remove(entry["tool_call_id"])
            continue
        assert not asked, f"unanswered before {entry}"
        asked = [called["id"] for called in entry.get("tool_calls", [])]
        assert all(
            isinstance(json.loads(called["function"]["arguments"]), dict) for called in entry.get("tool_calls", [])
        )


ASKED = (Type.REQUEST, Type.QUESTION)


@given(rows=st.lists(observations(session=st.just("mine"), kinds=[Kind.OBSERVATION]), max_size=10), to=forms)
def test_an_observation_more_only_appends_to_its_tier(rows: list[Observation], to: PackFormat) -> None:
    """S0.5: while nothing has to be left out, the bytes of the session tier are a prefix of its later bytes.

    A settled request is not one more: it takes the place of the open one.
    """
    visible = [
        replace(row, superseded_by=None, text=row.text or "x", status=None if row.type in ASKED else row.status)
        for row in rows
    ]
    parts = [
        session_part(packed(visible[:count], total=10**6, to=to).printed, to) for count in range(1, len(visible) + 1)
    ]
    for before, after in pairwise(parts):
        assert after.startswith(before)


def session_part(printed: str, to: PackFormat) -> str:
    """A pack up to the end of its rows, there being no tail."""
    ends = {
        PackFormat.TEXT: "\n</om-memory>",
        PackFormat.MARKDOWN: "\n</om-memory>",
        PackFormat.XML: "\n</session>",
        PackFormat.MESSAGES: "\\n</om-memory>",
        PackFormat.ANTHROPIC: "\\n</om-memory>",
        PackFormat.JSON: "\n</om-memory>",
    }
    return printed[: printed.rindex(ends[to])]


def test_the_text_pack_is_laid_out_like_this() -> None:
    """S0.2 S0.25: cross-session, session, then raw messages; a day once, then the rows of the day."""
    made = packed(
        [
            mine("Uses PostgreSQL 16", minute=14 * 60 + 32, priority=Priority.HIGH),
            mine("Tests pass", minute=15 * 60, status=Status.DONE),
            mine("Reads README", minute=26 * 60, priority=Priority.LOW),
        ],
        cross=[replace(ROW, text="Answers in German", type=Type.PREFERENCE)],
        messages=[
            user("list\nthe files"),
            call("a", '{"command":"ls"}'),
            replace(result("a", "README.md"), failed=True),
        ],
    )
    assert made.printed == (
        f'<om-memory session="mine">\n{PREAMBLE} {LOOKING_UP}\n\n'
        "From other sessions:\n2026-02-10\n12:00\nAnswers in German\n\n"
        "This session:\n2026-02-10\n14:32\nCRITICAL Uses PostgreSQL 16\n15:00\ndone: Tests pass\n"
        "2026-02-11\n02:00\nNOTE Reads README\n\n"
        "Last messages:\nuser: list\n\tthe files\n"
        '[toolCall Bash({"command":"ls"})]\n[toolResult Bash (error)] README.md\n'
        "</om-memory>\n"
    )


def test_markdown_has_the_summary_before_what_is_recent() -> None:
    """T59 S1.9: reflections, then observations."""
    rows = [mine("seen", number=1), mine("folded", number=2, kind=Kind.REFLECTION)]
    lines = shown_in(packed(rows, to=PackFormat.MARKDOWN).printed)
    order = [
        "## Conversation Memory",
        "### Summary",
        "- folded",
        "### Recent",
        "- seen",
    ]
    assert [line for line in lines if line in order] == order


def test_a_day_is_repeated_where_rows_alternate_between_days() -> None:
    rows = [mine("a", minute=0), mine("b", minute=1440), mine("c", minute=1)]
    lines = shown_in(packed(rows).printed)
    days = [line for line in lines if re.fullmatch("2026-02-1[01]", line)]
    assert days == ["2026-02-10", "2026-02-11", "2026-02-10"]


@pytest.mark.parametrize("to", BLOCKS)
def test_without_anything_to_show_nothing_is_printed(to: PackFormat) -> None:
    """T59: empty output, not a bare heading."""
    assert not packed(to=to).printed


def test_without_anything_to_show_json_can_still_be_parsed() -> None:
    """T59: a document with empty lists, and an empty list of messages."""
    assert json.loads(json_document(packed(to=PackFormat.JSON)))["observations"] == []
    assert json.loads(packed(to=PackFormat.MESSAGES).printed) == []


def test_reflections_fill_a_small_budget_before_observations() -> None:
    """T59: a budget smaller than the reflections holds those that fit and no observation."""
    folded = [
        mine(f"reflection {n} " + "of many words " * 8, number=n, kind=Kind.REFLECTION, importance=8) for n in range(9)
    ]
    seen = [mine(f"observation {n} " + "of many words " * 8, number=100 + n) for n in range(9)]
    made = packed(folded + seen, total=200)
    assert made.observations
    assert {row.kind for row in made.observations} == {Kind.REFLECTION}


def test_the_newest_that_fit_are_shown_oldest_to_newest() -> None:
    """T60 S1.9: selected from the newest, shown ascending."""
    made = packed([mine(f"Agent: observation number {n}", number=n, minute=n) for n in range(300)], total=1000)
    numbers = [int(row.text.split()[-1]) for row in made.observations]
    assert 20 < len(numbers) < 300
    assert numbers == list(range(300 - len(numbers), 300))


def test_of_reflections_and_other_rows_as_many_are_shown_as_may_be() -> None:
    """T60: of 7 reflections and 30 observations the newest 5 and 20, each oldest to newest."""
    rows = [mine(f"observation number {n}", number=n, minute=n, type=Type.FACT) for n in range(30)]
    rows += [
        mine(f"reflection number {n}", number=100 + n, minute=n, kind=Kind.REFLECTION, type=Type.FACT) for n in range(7)
    ]
    made = packed(rows, choice=Choice(reflections=5, others=20, is_recent=True))
    assert [row.text for row in made.observations] == [
        *(f"reflection number {n}" for n in range(2, 7)),
        *(f"observation number {n}" for n in range(10, 30)),
    ]
    newest_first = packed(rows, choice=Choice(reflections=5, others=20, is_descending=True))
    assert [row.text for row in newest_first.observations] == [
        *(f"reflection number {n}" for n in reversed(range(2, 7))),
        *(f"observation number {n}" for n in reversed(range(10, 30))),
    ]


def test_where_the_newest_go_first_an_old_row_of_weight_gives_way() -> None:
    """S1.9: `select = recent`; a pinned row stays, and reflections come before other rows."""
    rows = [
        mine("never deploy on Friday", priority=Priority.HIGH),
        mine("the summary", number=2, kind=Kind.REFLECTION),
        mine("pinned down", number=3, tags=("pinned",)),
        *(mine(f"read file number {n}", number=n, minute=n, priority=Priority.LOW) for n in range(4, 400)),
    ]
    made = packed(rows, total=300, choice=Choice(is_recent=True))
    texts = [row.text for row in made.observations]
    assert texts[:2] == ["the summary", "pinned down"]
    assert texts[2:] == [f"read file number {n}" for n in range(402 - len(texts), 400)]


@given(memory=memories, choice=choices)
def test_no_more_rows_are_shown_than_may_be(memory: dict[str, object], choice: Choice) -> None:
    """C11, XB9: whatever their order. Rows written together count once, and what is open or in force is kept."""
    made = pack(**memory, budgets=budgets(total=10**6), counter=APPROXIMATE, choice=choice)  # type: ignore[arg-type]
    folded = [row for row in made.observations if row.kind is Kind.REFLECTION]
    others = made.observations[len(folded) :]
    for rows, most in ((folded, choice.reflections), (others, choice.others)):
        written = {row.observed_at for row in rows if not (row.status is Status.OPEN or row.is_in_force)}
        assert len(written) <= (len(written) if most is None else most)
    assert list(made.observations[: len(folded)]) == folded
    own = memory["observations"]
    assert isinstance(own, tuple)
    places = [next(place for place, each in enumerate(own) if each is row) for row in folded]
    assert places == sorted(places, reverse=choice.is_descending)


def test_what_matters_stays_when_not_everything_fits() -> None:
    """S2.35: an old critical row stays, newer background gives way."""
    rows = [mine("never deploy on Friday", priority=Priority.HIGH)]
    rows += [mine(f"read file number {n}", number=n, minute=n, priority=Priority.LOW) for n in range(2, 400)]
    assert "never deploy on Friday" in packed(rows, total=300).printed


def test_a_row_too_long_is_passed_over_for_a_smaller_one() -> None:
    """T61 S2.35: one oversize row is skipped, a later smaller row still fits."""
    cross = [replace(ROW, text="word " * 5000, priority=Priority.HIGH), replace(ROW, text="Answers in German")]
    made = packed(cross=cross, total=300)
    assert [row.text for row in made.cross] == ["Answers in German"]
    assert made.left_out == 1


def test_a_budget_of_thirty_is_enough_for_a_short_row() -> None:
    """T61: budget 30 tokens gives something."""
    made = packed(cross=[replace(ROW, text="Uses pnpm")], total=30)
    assert "Uses pnpm" in made.printed


@pytest.mark.parametrize("total", range(0, 60, 5))
@pytest.mark.parametrize("to", BLOCKS)
def test_a_tiny_budget_gives_whole_rows_or_nothing(total: int, to: PackFormat) -> None:
    """F50: `--budget 25`."""
    row = mine("the database is PostgreSQL 16 on port 5433")
    printed = packed([row], total=total, to=to).printed
    assert not printed or row.text in printed


def test_a_small_pack_is_mostly_observations() -> None:
    """S0.1: of 2048 tokens at least 60 % are observations, at most 25 % raw messages."""
    own = [mine(f"decision {n}: use module number {n} for part {n}", number=n, minute=n) for n in range(400)]
    cross = [replace(row, session="other") for row in own]
    messages = [user(f"message {n} " + "and what was said in it " * 5) for n in range(100)]
    made = packed(own, cross=cross, messages=messages, total=2048)
    assert made.tokens[Tier.SESSION] >= 0.6 * 2048
    assert 0 < made.tokens[Tier.TAIL] <= 0.25 * 2048
    assert APPROXIMATE.text(made.printed) > 0.93 * 2048, "room was left unused"


def test_a_counter_that_only_estimates_leaves_a_share_of_the_budget_free() -> None:
    """XG12: so that a real tokenizer seldom counts more than the budget."""
    own = [mine(f"decision {n}: use module number {n} for part {n}", number=n, minute=n) for n in range(400)]
    exact = replace(APPROXIMATE, free_share=0.0)
    assert 0.97 * 2048 < packed(own, total=2048, counter=exact).total <= 2048
    assert packed(own, total=2048).total <= 0.96 * 2048


def test_what_one_tier_does_not_use_another_gets() -> None:
    """S0.1: shares flow on from tier to tier, and back."""
    own = [mine(f"decision {n}: use module number {n} for part {n}", number=n, minute=n) for n in range(400)]
    alone = packed(own, total=4000)
    assert alone.tokens[Tier.SESSION] > 0.92 * 4000
    others = packed(cross=[replace(row, session="other") for row in own], total=3000)
    assert others.tokens[Tier.CROSS] > 0.88 * 3000


@pytest.mark.parametrize("to", PackFormat)
@pytest.mark.parametrize("text", ["ptr->next uses arr[0] and foo[bar]", "    indented  twice", "C:\\new\\x & <b>"])
def test_code_comes_out_byte_for_byte(to: PackFormat, text: str) -> None:
    """F47: nothing is stripped from free text by pattern."""
    made = packed([mine(text)], messages=[user(text)], to=to)
    printed = made.printed
    row = f"IMPORTANT {text}" if text.startswith(" ") else text  # an indented line would continue a message
    if to is PackFormat.XML:
        root = ET.fromstring(printed)
        assert root.findtext("session/row") == root.findtext("tail/message") == text
    elif to is PackFormat.JSON:
        document = json.loads(json_document(made))
        assert document["observations"][0]["text"] == document["messages"][0]["text"] == text
    elif to is PackFormat.MESSAGES:
        system, said = json.loads(printed)
        assert f"\n{row}\n" in system["content"]
        assert said == {"role": "user", "content": text}
    elif to is PackFormat.ANTHROPIC:
        remembered, said = json.loads(printed)
        assert f"\n{row}\n" in remembered["content"][0]["text"]
        assert said["content"] == [{"type": "text", "text": text}]
    else:
        assert printed.count(text) == 2


@pytest.mark.parametrize("to", PackFormat)
@pytest.mark.parametrize("now", ["2026-02-09T00:00:00.000Z", "2026-02-10T23:59:00.000Z", "2031-01-01T00:00:00.000Z"])
def test_a_plan_stays_a_plan_whatever_day_it_is(to: PackFormat, now: str) -> None:
    """F48 F52: no relative dates, and nothing is declared done."""
    rows = [mine("The user plans to migrate on 2026-02-12", type=Type.PLAN, status=Status.OPEN, refers_to="2026-02-12")]
    printed = packed(rows, now=now, to=to).printed
    assert printed == packed(rows, to=to).printed
    assert "migrate on 2026-02-12" in printed
    assert not re.search(r"done|already|ago|likely", printed.replace(PREAMBLE, ""))


@pytest.mark.parametrize("to", PackFormat)
def test_the_task_of_another_session_is_not_in_the_pack(to: PackFormat) -> None:
    """F53 F49: facts and decisions of other sessions, fresh ones too, but not what they are at."""
    cross = [
        replace(ROW, text="Refactor the parser", type=Type.TASK, status=Status.OPEN, priority=Priority.HIGH),
        replace(ROW, text="The parser is PEG", type=Type.DECISION, priority=Priority.HIGH),
    ]
    printed = packed(cross=cross, to=to).printed
    assert "The parser is PEG" in printed
    assert "Refactor" not in printed


@pytest.mark.parametrize("to", PackFormat)
@pytest.mark.parametrize("text", NASTY)
def test_nasty_texts_reach_no_terminal_raw(to: PackFormat, text: str) -> None:
    """T74: neither controls nor direction marks are printed as they are."""
    printed = packed([mine(text)], messages=[user(text)], to=to).printed
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", printed)
    assert printed.encode()


def test_messages_can_be_gone_on_from() -> None:
    """T57: one system message with the memory, then the turns with calls and results paired."""
    messages = [
        user("fix it"),
        Message(role=Role.ASSISTANT, text="Looking."),
        call("a", '{"command":"ls"}'),
        call(None, "free text"),
        result("a", "README.md"),
        user("stop"),
        call("b"),
    ]
    system, *said = json.loads(packed([mine("Uses PostgreSQL 16")], messages=messages, to=PackFormat.MESSAGES).printed)
    assert system["role"] == "system"
    assert system["content"].startswith("<om-memory")
    assert "Uses PostgreSQL 16" in system["content"]
    assert said == [
        {"role": "user", "content": "fix it"},
        {
            "role": "assistant",
            "content": "Looking.",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "Bash", "arguments": '{"command":"ls"}'}},
                {
                    "id": "call-m4",
                    "type": "function",
                    "function": {"name": "Bash", "arguments": '{"input": "free text"}'},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "README.md"},
        {"role": "tool", "tool_call_id": "call-m4", "content": "(no result)"},
        {"role": "user", "content": "stop"},
        {
            "role": "assistant",
            "tool_calls": [{"id": "b", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}],
        },
    ]


def test_a_stored_count_of_another_counter_is_not_believed() -> None:
    """A count is a first estimate under its own counter's name only."""
    row = mine("Uses PostgreSQL 16", tokens=10**6)
    assert not packed([replace(row, counter=APPROXIMATE.name)]).observations
    assert packed([replace(row, counter="another")]).observations


def test_a_message_of_a_megabyte_is_an_excerpt() -> None:
    huge = Message(role=Role.USER, text="line of a pasted log\n" * 50_000)
    kept_huge = KeptMessage(seq=1, session="mine", key="m1", message=huge, tokens=250_000, counter=APPROXIMATE.name)
    made = pack(session=SESSION, messages=(kept_huge,), budgets=budgets(), counter=APPROXIMATE, now=NOW)
    assert 7000 < made.tokens[Tier.TAIL] <= 8000
    assert "characters left out] …" in made.printed
