"""What leaves sight when memory is pruned, and in which order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.base.record import replace
from omcli.memory.message import Role
from omcli.memory.observation import IN_FORCE, Kind, Observation, Priority, Status, Type
from omcli.memory.retention import MessageOutline, RetentionRules, Support
from omcli.operations.prune import Pool, first_to_go, is_across, messages_to_go, rows_to_go
from tests.material import row, row_id

BEFORE = "2026-02-01T00:00:00.000Z"
OLD, NEW = "2026-01-01T00:00:00.000Z", "2026-03-01T00:00:00.000Z"
NONE = dict[str, int]()

TYPES = (Type.FACT, Type.DECISION, Type.INSTRUCTION, Type.PREFERENCE, Type.BLOCKER, Type.TASK, Type.REQUEST)
ROWS = st.lists(
    st.builds(
        lambda day, **columns: row(0, event_at=f"2026-03-{day:02}T00:00:00.000Z", **columns),
        st.integers(1, 28),
        type=st.sampled_from(TYPES),
        priority=st.sampled_from(Priority),
        status=st.sampled_from([None, Status.OPEN, Status.DONE]),
        tokens=st.integers(0, 40),
        tags=st.sampled_from([(), (), ("pinned",)]),
    ),
    max_size=12,
)
RULES = st.builds(
    RetentionRules,
    before=st.none() | st.integers(1, 28).map(lambda day: f"2026-03-{day:02}T00:00:00.000Z"),
    keep_last=st.none() | st.integers(0, 12),
    max_tokens=st.none() | st.integers(0, 200),
    keep_sessions=st.none() | st.integers(0, 2),
    spares_none=st.booleans(),
)


def numbered(rows: Sequence[Observation]) -> list[Observation]:
    """Each with an id of its own."""
    return [replace(each, id=row_id(number)) for number, each in enumerate(rows)]


def gone(
    rows: Sequence[Observation], rules: RetentionRules, *, support: dict[str, int] = NONE, pools: Sequence[Pool] = ()
) -> list[str]:
    """The texts of the rows that go."""
    pools = pools or [Pool(session="s", rows=tuple(rows), active_at=NEW)]
    found = rows_to_go(pools, rules, support=lambda each: support.get(each, 0), tokens=lambda each: each.tokens)
    return [each.text for each, _ in found]


class TestThePool:
    """What goes first where rows have too many tokens."""

    @pytest.mark.parametrize(("most", "number"), [(100, 0), (101, 0), (90, 1), (91, 1), (50, 5), (0, 10)])
    def test_as_many_rows_go_as_it_takes_and_none_where_it_fits(self, most: int, number: int) -> None:
        """T51: ten rows of ten tokens."""
        rows = [row(each, tokens=10) for each in range(10)]
        assert len(gone(rows, RetentionRules(max_tokens=most))) == number

    def test_low_goes_before_medium_high_never_what_is_unknown_or_repeated_does_not_count(self) -> None:
        """T52: three may go."""
        priorities = {
            "high": Priority.HIGH, "critical": Priority.HIGH, "low": Priority.LOW, "medium": Priority.MEDIUM,
            "low2": Priority.LOW, "high2": Priority.HIGH,
        }  # fmt: skip
        pool = {name: row(n, text=name, priority=of) for n, (name, of) in enumerate(priorities.items())}
        candidates = ["high", "missing", "critical", "low", "medium", "low", "low2", "high2"]
        order = first_to_go(candidates, pool, support=lambda _: 0, most=3)
        assert [each.text for each in order] == ["low", "low2", "medium"]
        assert len(first_to_go(candidates, pool, support=lambda _: 0)) == 3

    def test_coverage_comes_before_relevance_and_relevance_before_age(self) -> None:
        """T52: strong before partial before none."""
        rows = [
            row(1, text="none low old", priority=Priority.LOW, event_at=OLD),
            row(2, text="partial medium"),
            row(3, text="strong medium new", event_at=NEW),
            row(4, text="strong medium old", event_at=OLD),
            row(5, text="strong low", priority=Priority.LOW, event_at=NEW),
            row(6, text="none medium"),
        ]
        support = {row_id(2): 1, row_id(3): 2, row_id(4): 5, row_id(5): 2}
        assert gone(rows, RetentionRules(max_tokens=0), support=support) == [
            "strong low", "strong medium old", "strong medium new", "partial medium", "none low old", "none medium",
        ]  # fmt: skip
        assert [Support.of(number) for number in (0, 1, 2, 3)] == [
            Support.NONE, Support.PARTIAL, Support.STRONG, Support.STRONG,
        ]  # fmt: skip

    def test_of_equal_relevance_the_older_goes(self) -> None:
        """T53: one may go."""
        pool = {
            name: row(n, text=name, event_at=f"{name}-01T00:00:00.000Z")
            for n, name in enumerate(("2026-02", "2026-01"))
        }
        assert [each.text for each in first_to_go(pool, pool, support=lambda _: 0, most=1)] == ["2026-01"]

    def test_what_is_open_or_in_force_stays(self) -> None:
        rows = [
            row(1, text="open", type=Type.REQUEST, status=Status.OPEN),
            row(2, text="decision", type=Type.DECISION),
            row(3, text="done", type=Type.REQUEST, status=Status.DONE),
            row(4, text="high", priority=Priority.HIGH),
        ]
        assert gone(rows, RetentionRules(max_tokens=0)) == ["done"]
        assert gone(rows, RetentionRules(max_tokens=0, spares_none=True)) == ["open", "decision", "done"]


class TestTheOtherRules:
    """Limits by age and count, which say themselves what goes."""

    def test_all_but_the_newest_rows_of_a_session(self) -> None:
        """T55: five rows, two stay."""
        rows = [
            row(number, text=f"row {number}", event_at=f"2026-03-0{6 - number}T00:00:00.000Z") for number in range(5)
        ]
        assert gone(rows, RetentionRules(keep_last=2)) == ["row 2", "row 3", "row 4"]
        assert gone(rows, RetentionRules(keep_last=5)) == []

    def test_all_but_the_sessions_that_were_active_last(self) -> None:
        """T55: not by name."""
        pools = [
            Pool(session=name, rows=(row(number, text=name),), active_at=f"2026-03-0{day}T00:00:00.000Z")
            for number, (name, day) in enumerate([("a", 5), ("b", 1), ("c", 4), ("d", 2), ("e", 3)])
        ]
        assert gone((), RetentionRules(keep_sessions=3), pools=pools) == ["b", "d"]
        assert gone((), RetentionRules(keep_sessions=0), pools=pools) == ["a", "b", "c", "d", "e"]

    def test_rows_older_than_a_day(self) -> None:
        rows = [row(1, text="old", event_at=OLD), row(2, text="at", event_at=BEFORE), row(3, text="new", event_at=NEW)]
        assert gone(rows, RetentionRules(before=BEFORE)) == ["old"]

    def test_a_row_that_several_rules_name_goes_once_for_the_first_reason(self) -> None:
        rows = (row(1, text="old", event_at=OLD),)
        dropped = list(
            rows_to_go(
                [Pool(session="s", rows=rows, active_at=OLD)],
                RetentionRules(before=BEFORE, keep_last=0, max_tokens=0, keep_sessions=0),
                support=lambda _: 0,
                tokens=lambda each: each.tokens,
            )
        )
        assert [reason for _, reason in dropped] == ["not among the last 0 sessions"]

    def test_pinned_rows_and_standing_instructions_stay_and_what_is_open_where_rows_are_counted(self) -> None:
        rows = [
            row(1, text="pinned", tags=("pinned",), event_at=OLD),
            row(2, text="instruction", type=Type.INSTRUCTION, event_at=OLD),
            row(3, text="preference", type=Type.PREFERENCE, event_at=OLD),
            row(4, text="taken back", type=Type.INSTRUCTION, status=Status.RESOLVED, event_at=OLD),
            row(5, text="blocker", type=Type.BLOCKER, status=Status.OPEN, event_at=OLD),
            row(6, text="request", type=Type.REQUEST, status=Status.OPEN, event_at=OLD),
        ]
        assert gone(rows, RetentionRules(keep_last=0)) == ["taken back", "request"]
        assert gone(rows, RetentionRules(before=NEW)) == ["taken back", "blocker", "request"]
        assert len(gone(rows, RetentionRules(keep_last=0, spares_none=True))) == 6

    def test_what_is_out_of_sight_goes_by_age_and_with_its_session_alone(self) -> None:
        pool = Pool(session="s", rows=(), active_at=OLD, hidden=(row(1, text="hidden", event_at=OLD),))
        for rules, expected in (
            (RetentionRules(before=BEFORE), ["hidden"]),
            (RetentionRules(keep_sessions=0), ["hidden"]),
            (RetentionRules(keep_last=0), []),
            (RetentionRules(max_tokens=0), []),
        ):
            assert gone((), rules, pools=[pool]) == expected

    def test_rules_say_what_they_are_about(self) -> None:
        assert RetentionRules().is_empty
        assert not RetentionRules(messages_before=OLD).is_empty
        assert not RetentionRules(messages_before=OLD).is_about_rows
        assert RetentionRules(keep_last=0).is_about_rows
        assert [is_across(each) for each in (row(1), row(1, session=None), row(1, kind=Kind.ITEM))] == [
            False,
            True,
            True,
        ]


@given(ROWS, RULES)
def test_whatever_the_rules_each_row_goes_once_and_what_is_kept_is_no_more_than_they_say(
    rows: list[Observation], rules: RetentionRules
) -> None:
    rows = numbered(rows)
    pool = Pool(session="s", rows=tuple(rows), active_at=NEW)
    dropped = list(rows_to_go([pool], rules, support=lambda _: 0, tokens=lambda each: each.tokens))
    ids = [each.id for each, _ in dropped]
    assert len(ids) == len(set(ids))
    left = [each for each in rows if each.id not in set(ids)]
    if not rules.spares_none:
        assert all(each in left for each in rows if "pinned" in each.tags)
    if rules.before is not None:
        assert all("pinned" in each.tags or each.type in IN_FORCE for each in left if each.dated < rules.before)
    if rules.keep_last is not None and rules.spares_none:
        assert len(left) <= rules.keep_last
    if rules.max_tokens is not None and sum(each.tokens for each in left) > rules.max_tokens:
        kept = [each for each in left if each.priority is not Priority.HIGH]
        assert all("pinned" in each.tags or each.status is Status.OPEN or each.is_in_force for each in kept)
        assert not (kept and rules.spares_none)
    if rules.is_empty:
        assert not ids


def held(seq: int, role: Role = Role.USER, **fields: object) -> MessageOutline:
    """A message that was observed, long ago."""
    columns = {"at": OLD, "call_id": None, "is_main": True, "is_covered": True} | fields
    return MessageOutline(seq=seq, role=role, **columns)  # type: ignore[arg-type]


class TestMessages:
    """Which messages go."""

    def test_what_is_old_and_observed_goes(self) -> None:
        outline = [held(1), held(2, at=BEFORE), held(3, is_covered=False), held(4, at=None)]
        assert messages_to_go(outline, before=BEFORE, undated=NEW) == (1,)
        assert messages_to_go(outline, before=BEFORE, undated=OLD) == (1, 4)

    def test_a_call_and_its_results_go_together(self) -> None:
        def exchange(**last: object) -> list[MessageOutline]:
            return [
                held(1, Role.CALL, call_id="x"),
                held(2, Role.CALL, call_id="y"),
                held(3, Role.RESULT, call_id="x"),
                held(4, Role.RESULT, call_id="y"),
                held(5, Role.RESULT, call_id="x", **last),
            ]

        assert messages_to_go(exchange(), before=BEFORE, undated=NEW) == (1, 2, 3, 4, 5)
        assert messages_to_go(exchange(at=NEW), before=BEFORE, undated=NEW) == (2, 4)
        assert messages_to_go(exchange(is_covered=False), before=BEFORE, undated=NEW) == (2, 4)

    def test_what_the_agent_said_last_stays_since_it_may_be_answered(self) -> None:
        outline = [held(1, Role.ASSISTANT), held(2, Role.ASSISTANT), held(3, Role.ASSISTANT, is_main=False), held(4)]
        assert messages_to_go(outline, before=BEFORE, undated=NEW) == (1, 3, 4)

    @given(
        st.lists(
            st.tuples(
                st.sampled_from(Role),
                st.sampled_from([None, "x", "y"]),
                st.sampled_from([OLD, NEW, None]),
            ),
            max_size=12,
        ),
        st.integers(0, 12),
    )
    def test_nothing_that_waits_or_is_new_ever_goes(
        self, said: list[tuple[Role, str | None, str | None]], covered: int
    ) -> None:
        outline = [
            held(seq, role, call_id=call_id, at=at, is_covered=seq < covered)
            for seq, (role, call_id, at) in enumerate(said)
        ]
        by_seq = {each.seq: each for each in outline}
        for seq in messages_to_go(outline, before=BEFORE, undated=NEW):
            assert by_seq[seq].is_covered
            assert by_seq[seq].at == OLD
