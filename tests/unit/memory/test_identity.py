"""What makes a message the same message when it comes again."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.message import Message, Role, digest
from omcli.memory.transcript import Identities, derived_session, printed_key


def _reading(messages: list[Message], *, session: str = "s", copies: bool = False) -> list[str]:
    identities = Identities(session, format_name="f", copies=copies)
    return [identities.of(message) for message in messages]


def _said(text: str, **facts: str) -> Message:
    return replace(Message(role=Role.USER, text=text), **facts)  # type: ignore[arg-type]


_TALK = st.lists(st.sampled_from(["ok", "yes", "go on", "ok."]).map(_said), max_size=12)


@given(_TALK, st.integers(0, 12))
def test_a_grown_transcript_gives_its_old_messages_the_identities_they_had(talk: list[Message], cut: int) -> None:
    """F2, S2.10: also where the producer gives no ids and people repeat themselves."""
    assert _reading(talk)[:cut] == _reading(talk[:cut])


@given(_TALK)
def test_what_is_said_twice_is_two_messages(talk: list[Message]) -> None:
    assert len(set(_reading(talk))) == len(talk)


def test_the_same_id_and_content_is_the_same_message() -> None:
    """F68: by the producer's id, then by content."""
    first, again, rewritten = _said("a", id="1"), _said("a", id="1"), _said("b", id="1")
    one, two, three = _reading([first, again, rewritten])
    assert one == two
    assert one != three, "an id that comes again with other content must not hide it: exports mask ids"


def test_only_formats_that_copy_share_identities_between_sessions() -> None:
    """F68: a resumed session carries the messages of the one before; two chats that both say "ok" are two."""
    with_id, with_time, bare = _said("ok", id="1"), _said("ok", at="2026-01-25T10:47:18.908Z"), _said("ok")
    for message in (with_id, with_time):
        assert _reading([message], copies=True) == _reading([message], session="other", copies=True)
        assert _reading([message]) != _reading([message], session="other")
    assert _reading([bare], copies=True) != _reading([bare], session="other", copies=True)


def test_instants_count_to_the_second() -> None:
    """F68: a prompt history keeps only seconds; the same words at another second are another prompt."""
    session, history = _said("go on", at="2026-01-25T10:47:18.908Z"), _said("go on", at="2026-01-25T10:47:18.000Z")
    later = _said("go on", at="2026-01-25T10:47:19.000Z")
    assert _reading([session], copies=True) == _reading([history], copies=True)
    assert _reading([session], copies=True) != _reading([later], copies=True)


@given(st.lists(st.one_of(st.none(), st.text()), max_size=5), st.lists(st.one_of(st.none(), st.text()), max_size=5))
def test_a_digest_tells_its_parts_apart(left: list[str | None], right: list[str | None]) -> None:
    assert (digest(*left) == digest(*right)) == (left == right)


def test_a_session_without_an_id_is_named_after_its_first_prompt() -> None:
    """The same for a grown file and for a pipe; another for another first prompt or another time."""
    opening = _said("hello", at="2026-01-25T10:47:18.908Z")
    assert derived_session("text", opening) == derived_session("text", opening)
    assert derived_session("text", opening) != derived_session("text", replace(opening, at=None))
    assert derived_session("text", opening).startswith("text-")


def test_a_message_is_called_by_its_producers_id_where_it_has_one() -> None:
    """S2.10."""
    assert printed_key(_said("a", id="D1:3"), "f" * 32) == "D1:3"
    assert printed_key(_said("a"), "0123456789abcdef" * 2) == "m0123456789a"


def test_a_result_tells_the_identity_that_stores_of_schema_1_have_it_under() -> None:
    """T69: the numbers are those of the first om. Its results counted their tool as well."""
    result = Message(role=Role.RESULT, text="3 failed", tool="Bash", call_id="c1")
    named = replace(result, id="r1", at="2026-03-12T10:00:00.000Z")
    identities = Identities("s", format_name="f", copies=False)
    formerly = [identities.with_earlier(message)[1] for message in (named, result, result)]
    assert formerly == [
        "128cbf76f2cd200b7329c9145d259533",
        "02c40d8663a02b7553ba60dfa0515027",
        "cfdb5177ad2ea68cb2a9618e99d7c654",
    ]


def test_what_is_no_result_keeps_the_identity_that_stores_of_schema_1_have_it_under() -> None:
    call = Message(role=Role.CALL, text="{}", tool="Bash", call_id="c1")
    known = Identities("s", format_name="f", copies=False).with_earlier(call)
    assert known == ("bbcee89859633e74fb955e74b95070ec", None)


def test_a_plain_turn_is_the_same_in_a_list_that_turns_out_to_be_of_the_other_kind() -> None:
    """Which interface a list is for shows only when a tool has been called."""
    openai, anthropic = (Identities("s", format_name=name, copies=False) for name in ("openai", "anthropic"))
    for message in (_said("ok"), _said("ok"), _said("ok", id="1"), _said("ok", at="2026-01-25T10:47:18.908Z")):
        (now, formerly), (later, before) = openai.with_earlier(message), anthropic.with_earlier(message)
        assert (now, formerly) == (before, later)
        assert now != later
    call = Message(role=Role.CALL, text="{}", call_id="1")
    assert openai.with_earlier(call)[1] is None, "calls are written differently in the two"


@given(_TALK)
def test_a_message_has_the_identity_of_its_count(talk: list[Message]) -> None:
    """What goes on from a count gives the same as a reading from the beginning."""
    whole, counted = Identities("s", format_name="f", copies=False), Identities("s", format_name="f", copies=False)
    before: dict[int, int] = {}
    for message in talk:
        number = before.get(counted.short(message), 0)
        assert whole.with_earlier(message) == counted.with_earlier(message, before=number)
        before[counted.short(message)] = number + 1
    assert whole.counted() == before
