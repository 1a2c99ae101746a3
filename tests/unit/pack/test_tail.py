"""The working tier: the newest messages that fit."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.message import KeptMessage, Message, Role, results_by_call
from omcli.pack.tail import TOOL_CHARS, Turn, beginning, excerpt, newest, turns
from tests.strategies import kept_messages, texts


def kept(*messages: Message) -> tuple[KeptMessage, ...]:
    """Messages as a store holds them."""
    return tuple(
        KeptMessage(seq=seq, session="s", key=f"m{seq}", message=message, tokens=0, counter="test")
        for seq, message in enumerate(messages, start=1)
    )


def user(text: str) -> Message:
    """A prompt."""
    return Message(role=Role.USER, text=text)


def call(call_id: str | None, text: str = "{}") -> Message:
    """A tool call."""
    return Message(role=Role.CALL, text=text, tool="Bash", call_id=call_id)


def result(call_id: str | None, text: str = "ok") -> Message:
    """A tool's answer."""
    return Message(role=Role.RESULT, text=text, tool="Bash", call_id=call_id)


def words(turn: Turn) -> int:
    """A counter: a token per word."""
    return len(turn.text.split())


def chosen(messages: Sequence[Message], room: int) -> list[Message]:
    """What the tail shows of messages, in words."""
    return [turn.message for turn in turns(newest(kept(*messages), room=room, cost=words))]


FOURTEEN = " ".join(["word"] * 14)


def test_the_newest_messages_that_fit_are_shown_oldest_first() -> None:
    """T57 S1.14: ten messages of 14 tokens in a tail of 30 leave the last two."""
    messages = [user(f"{number} {FOURTEEN[5:]}") for number in range(10)]
    assert chosen(messages, 30) == messages[-2:]


def test_the_only_message_is_shown_as_an_excerpt_where_it_does_not_fit() -> None:
    """T57: one message of 10 000 tokens is still shown, and says what is missing."""
    message = user(" ".join(str(number) for number in range(10_000)))
    (unit,) = newest(kept(message), room=100, cost=words)
    shown = unit.turns[0].text
    assert unit.cost <= 100
    assert shown.startswith("0 1 2 ")
    assert shown.endswith(" 9998 9999")
    assert "characters left out] …" in shown
    assert not unit.turns[0].is_whole


def test_a_message_that_no_excerpt_makes_fit_is_left_out() -> None:
    """F50: nothing rather than too much."""
    assert chosen([user("word " * 10_000)], 3) == []


def test_a_message_too_long_for_any_tail_does_not_hide_that_it_was_there() -> None:
    shown = turns(newest(kept(user("word " * 10_000), user("and then?")), room=200, cost=words))
    assert [turn.is_whole for turn in shown] == [False, True]


def test_the_tail_does_not_start_with_a_result() -> None:
    """T57 S1.14: the cut lands on a tool result."""
    messages = [user("go"), call("a", FOURTEEN), result("a", FOURTEEN), user("and now?")]
    assert chosen(messages, 20) == messages[3:]
    assert chosen(messages, 30) == messages[1:]


def test_calls_made_together_stay_with_their_results() -> None:
    """T57: call and result stay together, also where two calls are answered after both were made."""
    messages = [call("a", FOURTEEN), call("b", "x"), result("a", FOURTEEN), result("b", "y"), user("next")]
    assert chosen(messages, 10) == [messages[1], messages[3], messages[4]]


def test_a_transcript_that_ends_in_a_call_is_shown_unchanged() -> None:
    """T57: no cut, transcript ends in a tool call."""
    messages = [user("list the files"), call("a")]
    assert chosen(messages, 1000) == messages


def test_a_result_whose_call_is_not_there_is_left_out() -> None:
    messages = [result("gone"), user("hello")]
    assert chosen(messages, 1000) == messages[1:]


def test_long_tool_results_do_not_evict_the_dialogue() -> None:
    """S2.6 S2.7: arguments and results are cut at 1500 characters, head and tail kept, the mark names the cut."""
    messages = [user("why does it fail?"), call("a"), result("a", "line of a log\n" * 2000), user("well?")]
    shown = turns(newest(kept(*messages), room=8000, cost=words))
    assert [turn.message for turn in shown] == messages
    text = shown[2].text
    assert len(text) < TOOL_CHARS + 50
    assert text.startswith("line of a log\n")
    assert text.endswith("line of a log\n")
    assert "\n… [26" in text, "the cut falls between lines"


def test_the_newest_results_are_whole_while_they_take_half_of_the_room() -> None:
    """XB8, S0.1: the last messages are raw."""
    output = "line of a log\n" * 250  # 1000 words, 3500 characters
    messages = [each for name in "abcd" for each in (user(f"run {name}"), call(name), result(name, output))]
    shown = turns(newest(kept(*messages), room=5000, cost=words))
    assert [turn.message for turn in shown] == messages
    results = [turn for turn in shown if turn.message.role is Role.RESULT]
    assert [turn.is_whole for turn in results] == [False, False, True, True]
    assert all(len(turn.text) < TOOL_CHARS + 50 for turn in results[:2])


@pytest.mark.parametrize(("chars", "longest"), [(None, 3500), (5000, 3500), (1000, 1050), (100, 150)])
def test_the_limit_of_a_result_is_lifted_or_lowered(chars: int | None, longest: int) -> None:
    """XB8: without a limit everything that is shown is whole, and reaches less far back."""
    output = "line of a log\n" * 250
    messages = [each for name in "abcdefgh" for each in (call(name), result(name, output))]
    shown = turns(newest(kept(*messages), room=7200, cost=words, chars=chars, is_growing=True))
    lengths = {len(turn.text) for turn in shown if turn.message.role is Role.RESULT}
    assert len(lengths) == 1
    assert longest - 60 < lengths.pop() <= longest
    assert (len(shown) < len(messages)) == (longest == 3500)


@given(messages=kept_messages(), room=st.integers(20, 500), chars=st.none() | st.integers(0, 200))
def test_in_a_growing_tail_further_messages_change_no_earlier_ones(
    messages: tuple[KeptMessage, ...], room: int, chars: int | None
) -> None:
    """XB8, S0.5: how a text is cut does not depend on what follows."""

    def shown(count: int) -> dict[int, str]:
        units = newest(messages[:count], room=room, cost=words, chars=chars, is_growing=True)
        return {turn.kept.seq: turn.text for unit in units if not unit.is_cut for turn in unit.turns}

    whole = shown(len(messages))
    for count in range(len(messages)):
        before = shown(count)
        assert all(whole[seq] == text for seq, text in before.items() if seq in whole)


def test_in_a_small_tail_tool_results_are_cut_shorter() -> None:
    messages = [user("why does it fail?"), call("a"), result("a", "line of a log\n" * 2000), user("well?")]
    assert chosen(messages, 100) == messages


def test_repeated_ids_pair_a_result_with_the_call_before_it() -> None:
    """Producers repeat ids, and old ones have none."""
    messages = [call("a"), result("a"), call("a"), result("a"), call(None), call(None), result(None), result(None)]
    assert results_by_call(messages) == {0: (1,), 2: (3,), 4: (6,), 5: (7,)}


def test_calls_made_together_under_one_id_have_the_results_in_turn() -> None:
    """What is left over goes to the last of them; one too few, and it is the first that has none."""
    together = [call("a"), call("a"), result("a"), result("a")]
    assert results_by_call(together) == {0: (2,), 1: (3,)}
    assert results_by_call([*together, result("a")]) == {0: (2,), 1: (3, 4)}
    assert results_by_call([call("a"), *together]) == {0: (), 1: (3,), 2: (4,)}
    assert results_by_call([call("a"), user("Stop."), call("a"), result("a"), result("a")]) == {0: (), 2: (3, 4)}


@given(messages=kept_messages(), room=st.integers(-5, 500))
def test_the_tail_fits_and_no_result_is_without_its_call(messages: tuple[KeptMessage, ...], room: int) -> None:
    """T57 S1.14: the budget holds, order is kept, every result shown has its call before it."""
    units = newest(messages, room=room, cost=words)
    assert sum(unit.cost for unit in units) <= max(0, room)
    shown = turns(units)
    assert [turn.kept.seq for turn in shown] == sorted(turn.kept.seq for turn in shown)
    answered = {place for results in results_by_call([turn.message for turn in shown]).values() for place in results}
    assert answered == {place for place, turn in enumerate(shown) if turn.message.role is Role.RESULT}


@given(messages=kept_messages(), room=st.integers(0, 500))
def test_the_tail_has_no_gap(messages: tuple[KeptMessage, ...], room: int) -> None:
    """S1.14: newest to oldest; only results without a call are passed over."""
    places = {place for unit in newest(messages, room=room, cost=words) for place in unit.places}
    spoken = [place for place, one in enumerate(messages) if one.message.role is not Role.RESULT]
    shown = [place for place in spoken if place in places]
    assert shown == spoken[len(spoken) - len(shown) :]


@given(text=texts, chars=st.integers(0, 300))
def test_an_excerpt_accounts_for_every_character(text: str, chars: int) -> None:
    """S2.7: head and tail are kept, the mark names the cut."""
    cut = excerpt(text, chars)
    if cut == text:
        return
    head, mark, rest = cut.partition("… [")
    number, _, tail = rest.partition(" characters left out] …")
    assert mark
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) + int(number) == len(text)
    assert len(head) + len(tail) <= chars


@pytest.mark.parametrize("chars", [80, 101, 1500])
def test_an_excerpt_cuts_between_words(chars: int) -> None:
    cut = excerpt("alpha beta gamma delta\n" * 500, chars)
    assert set(cut.partition("…")[0].split()) <= {"alpha", "beta", "gamma", "delta"}
    assert set(cut.rpartition("…")[2].split()) <= {"alpha", "beta", "gamma", "delta"}


def begun(messages: Sequence[Message], room: int, *, may_begin: bool = True) -> int:
    """Where a raw tail of so many words begins."""
    return beginning(
        kept(*messages),
        room=room,
        tokens=lambda one: len(one.message.text.split()),
        **({} if may_begin else {"may_begin": lambda message: message.role is Role.USER}),
    )


class TestBeginning:
    def test_the_newest_that_fit_stay_and_at_least_one(self) -> None:
        """T57: ten messages of 14 tokens, a tail of 30; one of 10 000, a tail of 10; no tail."""
        messages = [user(FOURTEEN)] * 10
        assert begun(messages, 30) == 8
        assert begun([user("word " * 10_000)], 10) == 0
        assert begun(messages, 0) == 10
        assert begun([], 30) == 0

    def test_a_cut_at_a_result_moves_behind_it(self) -> None:
        """T57: it does not begin with a result; call and result stay together."""
        messages = [user("one"), call("a", "two"), result("a", "three"), user("four")]
        assert begun(messages, 2) == 3
        assert begun(messages, 3) == 1

    def test_a_cut_between_calls_that_wait_together_moves_behind_their_results(self) -> None:
        messages = [call("a", "1"), call("b", "2"), result("a", "3"), result("b", "4"), user("5")]
        assert [begun(messages, room) for room in (1, 2, 3, 4, 5)] == [4, 4, 4, 4, 0]

    def test_it_is_longer_where_nothing_shorter_will_do(self) -> None:
        messages = [user("1"), call("a", "2"), result("a", "3")]
        assert begun(messages, 1) == 1
        assert begun(messages, 1, may_begin=False) == 0

    def test_all_stay_where_all_fit_also_a_call_at_the_end(self) -> None:
        """T57: unchanged."""
        assert begun([user("1"), call("a", "2")], 100) == 0

    @given(kept_messages(), st.integers(0, 60))
    def test_no_call_is_parted_from_its_result(self, messages: tuple[KeptMessage, ...], room: int) -> None:
        place = beginning(messages, room=room, tokens=lambda one: one.tokens)
        assert place <= len(messages)
        if place in (0, len(messages)):
            return
        assert messages[place].message.role is not Role.RESULT
        for at, results in results_by_call([one.message for one in messages]).items():
            assert at >= place or not results or results[-1] < place
