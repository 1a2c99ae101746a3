"""Validation of a model's reply: rows that are kept, corrected or rejected."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from omcli.base.errors import Unusable
from omcli.memory.message import Message, Role
from omcli.memory.observation import Draft, Kind, Observation, Priority, Source, Status, Type
from tests.batches import Talk
from tests.material import row, row_id
from tests.replying import TOKEN, answer, batch_of, by_model, observed, said
from tests.unit.text.test_redaction import FAKES

_TALK = (
    Talk()
    .user("We deploy from `release/2.4` on Friday, never from main. The port is 8443.")
    .agent("Understood: deploys come from `release/2.4`.")
    .tool("Bash", {"command": "make -C /src/app/server lint"}, "server/routes.py:127: unused import", failed=True)
    .agent("`make lint` fails at server/routes.py:127.")
)


def _one(*rows: dict[str, object], talk: Talk = _TALK, **fields: object) -> tuple[Draft, dict[str, int]]:
    result = observed(talk, answer(*rows, **fields))
    (draft,) = by_model(result)
    return draft, dict(result.findings)


# ---- labels


def test_a_row_that_cites_what_was_not_shown_is_rejected() -> None:
    """T21, F37, V2: alone, and counted."""
    result = observed(_TALK, answer(said("The port is 8443", "m1"), said("Nothing", "m99"), said("Deploys", "m2")))
    assert [draft.text for draft in result.drafts] == ["The port is 8443", "Deploys"]
    assert result.findings == {"unknown_labels": 1}


def test_a_row_that_replaces_what_was_not_shown_is_rejected() -> None:
    """V2."""
    rows = (said("The port is 8443", "m1"), said("Port", "m1", replaces=["o7"]))
    assert len(observed(_TALK, answer(*rows)).drafts) == 1


def test_labels_come_out_once_and_in_order() -> None:
    """T21, V3."""
    result = observed(_TALK, answer(said("Deploys come from `release/2.4`", "m2", "m1", "m2")))
    assert result.drafts[0].sources == (1, 2)


@pytest.mark.parametrize("bad", [said("Invented", "m99"), said("Nowhere"), said("  ", "m1"), {"sources": ["m1"]}])
def test_a_reply_of_which_most_is_rejected_is_unusable(bad: dict[str, object]) -> None:
    """V2: two of three; a second chance is given."""
    with pytest.raises(Unusable):
        observed(_TALK, answer(bad, said("The port is 8443", "m1"), bad))
    assert len(observed(_TALK, answer(bad, bad), answer(said("The port is 8443", "m1"))).drafts) == 1


def test_unknown_rows_that_were_used_are_merely_dropped() -> None:
    """S2.18, V2."""
    batch = batch_of(_TALK, row(1, text="Uses pnpm"), row(2, text="Likes tea"))
    result = observed(batch, answer(said("The port is 8443", "m1"), used=["o2", "o9", "o2"]))
    assert result.used == (row_id(2),)
    assert result.findings == {}


def test_a_row_needs_a_message_of_the_batch() -> None:
    """Rows about what was covered before would be written twice."""
    question, *rest = Talk().agent("Shall I use tabs?").user("Yes.").agent("Good.").kept
    batch = replace(_TALK.batch(), messages=tuple(rest), last_said=question)
    rows = (
        said("Asked for tabs", "m1"),
        said("User wants tabs", "m1", "m2", at=None),
        said("All is good", "m3", at=None),
    )
    result = observed(batch, answer(*rows))
    assert [draft.sources for draft in result.drafts] == [(1, 2), (3,)]
    assert result.findings == {"said_before": 1}


# ---- texts


def test_a_text_is_one_line_without_controls() -> None:
    """V4, F40, V16."""
    draft, findings = _one(said("The port\r\nis \x1b[31m8443\x00 \ud800now", "m1"))
    assert draft.text == "The port is 8443\ufffd \ufffdnow"
    assert findings["cleaned"] == 1


def test_a_text_that_is_too_long_is_cut_with_a_mark() -> None:
    """T20, V5: 12,000 characters."""
    result = observed(_TALK, answer(said("port " + "p" * 11_995, "m1")))
    (draft,) = result.drafts
    assert draft.text.endswith("p… [truncated 2000 chars]")
    assert draft.text.index("…") == 10_000
    assert result.findings["cut"] == 1


@pytest.mark.parametrize("kind", FAKES)
def test_secrets_are_taken_out_of_a_reply(kind: str) -> None:
    """V15, F46, O22: of rows and of the task."""
    fake = FAKES[kind]
    result = observed(_TALK, answer(said(f"It is: {fake.text}", "m1"), current_task=f"rotating {fake.text}"))
    assert fake.secret not in repr(result)
    assert result.findings["redacted"] >= 1


def test_no_part_of_a_secret_is_left_where_a_row_is_cut() -> None:
    """V15, V5."""
    fake = FAKES["Anthropic"]
    (draft,) = observed(_TALK, answer(said("port " * 1_993 + fake.secret + " port" * 100, "m1"))).drafts
    assert fake.secret[:12] not in draft.text
    assert "truncated" in draft.text


def test_the_fence_is_not_repeated() -> None:
    """V16."""
    draft, _ = _one(said(f"The port is 8443 {TOKEN}", "m1"))
    assert draft.text == "The port is 8443"


def test_more_than_sixty_rows_are_not_taken() -> None:
    """V5."""
    words = "one two three four five six seven eight nine ten".split()
    rows = [said(f"Port {first} {second}", "m1") for first in words for second in words]
    result = observed(_TALK, answer(*rows))
    assert len(result.drafts) == 60
    assert result.findings == {"rows_left_out": 40}


# ---- what a row is


@pytest.mark.parametrize(
    ("kind", "type_"),
    [
        ("decision", Type.DECISION), ("fact", Type.FACT), ("preference", Type.PREFERENCE), ("task", Type.REQUEST),
        ("outcome", Type.OUTCOME), ("error", Type.BLOCKER), ("event", Type.EVENT), ("question", Type.QUESTION),
        ("identity", Type.FACT), ("gossip", Type.FACT),
    ],
)  # fmt: skip
def test_kinds_are_types(kind: str, type_: Type) -> None:
    """S2.17; an unknown one is a fact."""
    draft, _ = _one(said("The port is 8443", "m1", kind=kind))
    assert draft.type is type_
    assert draft.tags == (("identity",) if kind == "identity" else ())


def test_what_an_agent_means_to_do_is_a_plan() -> None:
    draft, _ = _one(said("Deploy on Friday", "m2", kind="task"))
    assert draft.type is Type.PLAN


@pytest.mark.parametrize(("priority", "importance"), [("high", 7), ("medium", 5), ("low", 2), ("urgent", 5)])
def test_priorities_are_importances(priority: str, importance: int) -> None:
    draft, _ = _one(said("The port is 8443", "m1", priority=priority))
    assert (draft.importance, draft.source) == (importance, Source.MODEL)
    if priority != "urgent":
        assert Priority.of_importance(draft.importance) == priority


@pytest.mark.parametrize(
    ("kind", "status", "kept"),
    [
        ("outcome", "done", Status.DONE), ("task", "open", Status.OPEN), ("fact", "open", None),
        ("fact", "resolved", None), ("error", "resolved", Status.RESOLVED), ("error", None, Status.OPEN),
        ("fact", "closed", None),
    ],
)  # fmt: skip
def test_a_status_needs_something_to_be_settled(kind: str, status: str | None, kept: Status | None) -> None:
    """`resolved` needs an error, or a row that it replaces."""
    draft, _ = _one(said("The port is 8443", "m1", kind=kind, status=status))
    assert draft.status is kept


def test_a_row_that_details_another_names_it() -> None:
    rows = [said("The port is 8443", "m1"), said("Never main", "m1", under=0), said("On Friday", "m1", under=2)]
    result = observed(_TALK, answer(*rows))
    assert [draft.under for draft in result.drafts] == [None, "The port is 8443", None]


# ---- what a row names


def test_a_row_with_names_missing_in_its_sources_is_unverified() -> None:
    """F37, V9: kept as unverified, low, without a status."""
    batch = batch_of(_TALK, row(1, text="Deploys come from main"))
    made_up = said(
        "Deploys to /srv/www/current.tar", "m2", priority="high", kind="outcome", status="done", replaces=["o1"]
    )
    result = observed(batch, answer(made_up))
    (draft,) = result.drafts
    assert (draft.importance, draft.status, draft.replaces) == (2, None, ())
    assert draft.tags == ("unverified",)
    assert draft.metadata["unverified"] == ["/srv/www/current.tar"]
    assert result.findings["unverified"] == 1


def test_a_row_with_invented_names_can_be_rejected() -> None:
    """F37, V9: `verify`."""
    result = observed(_TALK, answer(said("Deploys to /srv/www/current.tar", "m2")), verify=True)
    assert (result.drafts, result.findings, result.is_whole) == ((), {"unverified": 1}, True)


def test_names_of_a_row_may_occur_in_a_message_nearby() -> None:
    """V9: that message becomes a source of it."""
    draft, findings = _one(said("Lint fails at server/routes.py:127", "m5"))
    assert draft.sources == (5,)
    draft, findings = _one(said("Lint, run by `make -C /src/app/server lint`, fails at line 127", "m5"))
    assert (draft.sources, findings, draft.tags) == ((3, 5), {"sources_added": 1}, ())


def test_a_row_may_name_what_the_row_it_replaces_names() -> None:
    """O5: a change says what it replaces."""
    batch = batch_of(_TALK, row(1, text="The port is 9000"))
    (draft,) = observed(batch, answer(said("The port is 8443, no longer 9000", "m1", replaces=["o1"]))).drafts
    assert (draft.tags, draft.replaces) == ((), (row_id(1),))


def test_paths_may_be_named_below_the_working_directory_or_in_full() -> None:
    draft, _ = _one(said("Lint fails at /src/app/server/routes.py:127", "m5"))
    assert draft.tags == ()


# ---- what a row replaces


@pytest.mark.parametrize(
    ("standing", "is_replaced"),
    [
        (row(1, text="Deploys come from main"), True),
        (row(1, text="Deploy it", type=Type.REQUEST, status=Status.OPEN), True),
        (row(1, text="Deploy it", type=Type.REQUEST, status=Status.DONE), False),
        (row(1, text="Asked about the deploy", type=Type.EVENT), False),
        (row(1, text="Likes green tea"), False),
        (row(1, text="Deploys come from main", tags=("pinned",)), False),
        (replace(row(1, text="Deploys come from main", kind=Kind.NOTE), source=Source.USER), False),
    ],
)
def test_a_model_may_not_erase(standing: Observation, is_replaced: bool) -> None:
    """Only mutable rows about the same thing, and no notes."""
    new = said("Deploys come from `release/2.4`, never main", "m1", kind="decision", replaces=["o1"])
    result = observed(batch_of(_TALK, standing), answer(new))
    assert result.drafts[0].replaces == ((row_id(1),) if is_replaced else ())
    assert result.findings == ({} if is_replaced else {"not_replaced": 1})


def test_a_problem_is_replaced_only_where_it_is_settled() -> None:
    failed = row(1, text="`make lint` failed", type=Type.COMMAND_ERROR, status=Status.OPEN)
    for status, is_replaced in (("resolved", True), ("open", False), (None, False)):
        new = said("`make lint` is mended", "m5", kind="error", status=status, replaces=["o1"])
        assert observed(batch_of(_TALK, failed), answer(new)).drafts[0].replaces == (
            (row_id(1),) if is_replaced else ()
        )


def test_what_is_overruled_is_not_forgotten() -> None:
    """O5: a row that doesn't say what it replaces gets the earlier text."""
    batch = batch_of(_TALK, row(1, text="Deploys on Monday come from main after a review by Ada"))
    for text, says in (
        ("Deploys come from `release/2.4`", " (earlier: Deploys on Monday come from main after a review by Ada)"),
        ("Deploys come from `release/2.4`, not on Monday from main after a review by Ada", ""),
    ):
        (draft,) = observed(batch, answer(said(text, "m1", replaces=["o1"]))).drafts
        assert (draft.text, draft.replaces) == (text + says, (row_id(1),))


def test_an_unverified_row_supports_nothing() -> None:
    """V9: an invented name is not supported by the row that invented it."""
    made_up = row(1, text="Deploys to /srv/www/current.tar", tags=("unverified",))
    new = said("Deploys to /srv/www/current.tar still", "m1", replaces=["o1"])
    assert observed(batch_of(_TALK, made_up), answer(new)).drafts[0].tags == ("unverified",)


def test_a_reply_can_only_add() -> None:
    """F3: rows it doesn't mention stay, whatever it answers."""
    standing = [row(number, text=f"fact {number}") for number in range(500)]
    result = observed(batch_of(_TALK, *standing), answer(said("The port is 8443", "m1")))
    assert [draft.replaces for draft in result.drafts] == [()]


# ---- when


@pytest.mark.parametrize(
    ("at", "kept", "is_wrong"),
    [
        ("2026-03-02 10:01", "10:01", False),
        ("2026-03-02 10:04", "10:04", False),
        ("2026-03-02 09:59", "10:01", True),
        ("2025-03-02 10:01", "10:01", True),
        ("10:01", "10:01", True),
        ("soon", "10:01", True),
        (None, "10:01", False),
    ],
)
def test_a_row_is_dated_by_messages_of_the_batch(at: str | None, kept: str, is_wrong: bool) -> None:
    """V10, O15: else by the message it comes from."""
    draft, findings = _one(said("Deploys come from `release/2.4`", "m2", at=at))
    assert draft.event_at == f"2026-03-02T{kept}:00.000Z"
    assert findings == ({"times": 1} if is_wrong else {})


def test_times_are_read_by_the_clocks_they_were_shown_in() -> None:
    talk = Talk().add(Message(role=Role.USER, text="Late.", at="2026-03-02T23:30:00.000Z", utc_offset=60))
    draft, findings = _one(said("Late", "m1", at="2026-03-03 00:30"), talk=talk)
    assert (draft.event_at, findings) == ("2026-03-02T23:30:00.000Z", {})


def test_messages_without_times_give_rows_without() -> None:
    talk = Talk().add(Message(role=Role.USER, text="Once."))
    draft, findings = _one(said("Once", "m1"), talk=talk)
    assert (draft.event_at, findings) == (None, {})


@pytest.mark.parametrize(
    ("given", "estimated", "kept", "is_estimate"),
    [
        ("2026-03-06", None, "2026-03-06", False),
        ("2026-03", "exact", "2026-03", False),
        ("2026-03-06", "estimated", "2026-03-06", True),
        ("2026-03-13", "exact", "2026-03-13", True),
        ("2026-02-30", "exact", None, False),
        ("next week", "exact", None, False),
        (None, None, None, False),
    ],
)
def test_a_date_is_checked_against_the_closed_grammar(
    given: str | None, estimated: str | None, kept: str | None, is_estimate: bool
) -> None:
    """V10, O15, O16: one that the words contradict is an estimate, one that does not exist is none."""
    talk = Talk().user("I will deploy by Friday.")
    draft, _ = _one(said("User will deploy", "m1", refers_to=given, refers_to_kind=estimated), talk=talk)
    assert draft.refers_to == kept
    assert draft.metadata == ({"refers_to_kind": "estimated"} if is_estimate else {})


def test_a_date_that_a_row_names_in_words_is_found() -> None:
    draft, _ = _one(said("User will deploy by Friday", "m1"), talk=Talk().user("I will deploy by Friday."))
    assert draft.refers_to == "2026-03-06"


# ---- twice


def test_what_is_said_twice_is_one_row() -> None:
    """T22, V14."""
    result = observed(_TALK, answer(said("Deploys on Friday", "m2"), said("Deploys on Friday", "m1")))
    (draft,) = result.drafts
    assert (draft.sources, result.findings) == ((1, 2), {"duplicates": 1})


def test_what_is_recorded_already_is_not_recorded_again() -> None:
    """T22, V14, O19: it counts as used."""
    batch = batch_of(_TALK, row(1, text="Deploys on Friday"))
    result = observed(batch, answer(said("Deploys on Friday", "m1")))
    assert (result.drafts, result.used, result.is_whole) == ((), (row_id(1),), True)


def test_an_honest_log_becomes_one_row_with_a_count() -> None:
    """F33, V8: forty equal rows, of different messages, in a reply that ended as it should."""
    talk = Talk()
    for _ in range(40):
        talk.agent("Ran pytest, all passed.")
    rows = [said("Ran pytest once more, all passed", f"m{number}") for number in range(1, 41)]
    result = observed(talk, answer(*rows))
    (draft,) = result.drafts
    assert draft.text == "Ran pytest once more, all passed (× 40)"
    assert draft.sources == tuple(range(1, 41))


def test_rows_that_differ_in_a_number_are_one_only_where_they_come_from_the_same() -> None:
    """V8: counting up is no fact; what different messages say is."""
    talk = Talk()
    for number in range(30):
        talk.agent(f"Epoch {number} ended.")
    same = [said(f"The training ended epoch {number}", "m30") for number in range(30)]
    apart = [said(f"The training ended epoch {number}", f"m{number + 1}") for number in range(30)]
    assert len(observed(talk, answer(*apart)).drafts) == 30
    (draft,) = observed(talk, answer(*same)).drafts
    assert draft.text.endswith("(× 30)")


def test_a_sentence_said_again_and_again_is_said_once() -> None:
    """T20, V8: two hundred times in one row."""
    (draft,) = observed(_TALK, answer(said("The port is 8443 and it stays so. " * 200, "m1"))).drafts
    assert draft.text == "The port is 8443 and it stays so. (× 200)"


# ---- the task and the title


def test_what_is_being_done_is_a_row_in_place_of_the_last() -> None:
    """O25, S2.17."""
    before = row(1, text="Reading the code", type=Type.TASK, status=Status.OPEN, tags=("current",))
    reply = answer(said("The port is 8443", "m1"), current_task="Fixing `make lint`", next_step="wait for the user")
    task = observed(batch_of(_TALK, before), reply).drafts[-1]
    assert (task.text, task.type, task.status, task.tags) == (
        "Fixing `make lint`", Type.TASK, Status.OPEN, ("current",)
    )  # fmt: skip
    assert (task.metadata, task.replaces, task.sources) == ({"next_step": "wait for the user"}, (row_id(1),), (1, 5))


def test_a_task_that_goes_on_is_not_written_again() -> None:
    before = row(1, text="Fixing it", type=Type.TASK, tags=("current",), metadata={"next_step": "lint"})
    reply = answer(said("The port is 8443", "m1"), current_task="Fixing it", next_step="lint")
    assert len(observed(batch_of(_TALK, before), reply).drafts) == 1


def test_a_task_with_invented_names_is_dropped() -> None:
    """V9."""
    result = observed(_TALK, answer(said("The port is 8443", "m1"), current_task="Editing src/never_named.py"))
    assert len(result.drafts) == 1
    assert result.findings == {"unverified": 1}


@pytest.mark.parametrize(
    ("title", "kept"), [("Release deploys", True), ("No", False), ("x" * 61, False), (None, False)]
)
def test_a_title_is_short(title: str | None, kept: bool) -> None:
    result = observed(_TALK, answer(said("The port is 8443", "m1"), title=title))
    assert result.title == (title if kept else None)


# ---- nothing


def test_an_empty_list_is_no_failure_and_says_wait() -> None:
    """T13, S2.17: no row, not even of a task; what was used counts."""
    batch = batch_of(_TALK, row(1, text="Uses pnpm"))
    result = observed(batch, answer(used=["o1"], current_task="Waiting", title="A title"))
    assert (result.drafts, result.is_whole, result.used, result.title) == ((), False, (row_id(1),), None)


def test_the_longest_reply_is_validated_in_no_time() -> None:
    """Two hundred long rows of twenty messages each, with invented names."""
    talk = Talk()
    for number in range(100):
        talk.user(f"The harbour opens gate {number} of `berth_{number}` by Friday. " * 8)
    labels = [f"m{number}" for number in range(1, 21)]
    rows = [said(f"Gate {number} by Friday: /made/up/{number}.py. " * 50, *labels) for number in range(300)]
    began = time.process_time()
    observed(talk, answer(*rows))
    assert time.process_time() - began < 10
