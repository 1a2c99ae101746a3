"""Promises of every store about appending: `memory.ports.MessageLog` and `Bookmarks`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omcli.base.errors import SessionTaken
from omcli.memory.message import Image, Incoming, Message, MessageKind, Role, digest
from omcli.memory.ports import Store
from omcli.memory.session import Session
from omcli.memory.transcript import Bookmark, IngestedFile, Origin
from tests.contract.keeping import keep, next_batch, texts
from tests.material import COUNTER, LATER, NOW, result, said, session


class TestBookmarks:
    """How far files were taken in."""

    HERE = Origin(path="/transcripts/tide.jsonl", terms="as they are")
    FIRST = Bookmark(offset=10, digest=b"1" * 32, found="{}", carried=b"\x00known")
    LAST = Bookmark(offset=12, digest=b"2" * 32, found='{"messages": 3}')

    def test_they_come_back_as_they_were_put(self, store: Store) -> None:
        assert store.bookmarks.find(self.HERE) == ()
        store.bookmarks.put(self.HERE, [self.FIRST, self.LAST])
        assert store.bookmarks.find(self.HERE) == (self.FIRST, self.LAST)

    def test_new_ones_take_the_place_of_those_that_were_there_on_whatever_terms(self, store: Store) -> None:
        others = replace(self.HERE, terms="otherwise")
        store.bookmarks.put(self.HERE, [self.FIRST, self.LAST])
        store.bookmarks.put(others, [self.FIRST])
        assert (store.bookmarks.find(self.HERE), store.bookmarks.find(others)) == ((), (self.FIRST,))
        store.bookmarks.put(others, [])
        assert store.bookmarks.find(others) == ()

    def test_every_file_has_its_own(self, store: Store) -> None:
        there = replace(self.HERE, path="/transcripts/moon.jsonl")
        store.bookmarks.put(self.HERE, [self.FIRST])
        store.bookmarks.put(there, [self.LAST])
        assert (store.bookmarks.find(self.HERE), store.bookmarks.find(there)) == ((self.FIRST,), (self.LAST,))

    def test_a_path_that_is_no_unicode_is_a_path(self, store: Store) -> None:
        odd = replace(self.HERE, path="/transcripts/\udcff.jsonl")
        store.bookmarks.put(odd, [self.FIRST])
        assert store.bookmarks.find(odd) == (self.FIRST,)

    def test_every_file_that_was_taken_in_is_told_with_what_it_was_then(self, store: Store) -> None:
        """The stamp is that of the last bookmark; a file without bookmarks was not taken in."""
        there = Origin(path="/transcripts/moon.jsonl", terms="otherwise")
        assert store.bookmarks.files() == ()
        store.bookmarks.put(self.HERE, [self.FIRST.with_stamp("old"), self.LAST.with_stamp("12-1-7")])
        store.bookmarks.put(there, [self.FIRST])
        store.bookmarks.put(replace(there, path="/gone"), [])
        moon, tide = IngestedFile(origin=there, stamp=None), IngestedFile(origin=self.HERE, stamp="12-1-7")
        assert store.bookmarks.files() == (moon, tide)


class TestAppend:
    def test_a_message_comes_back_as_it_was_given(self, store: Store) -> None:
        """S2.13: the working directory is kept with every message."""
        message = Message(
            role=Role.RESULT,
            text='line one\r\nline two\x00 \U0001f600 中文 "quoted"',
            kind=MessageKind.SHELL,
            id="msg-1",
            at="2026-03-02T09:00:00.000Z",
            utc_offset=-210,
            name="Ada",
            agent="side",
            cwd="/src/other",
            tool="Bash",
            call_id="toolu_1",
            failed=False,
            exit_code=-9,
            images=(Image(media_type="image/png", size=5, sha256="ab" * 32),),
        )
        keep(store, Incoming(message=message, identity="0" * 32, key="printed-1", tokens=7))
        (kept,) = store.messages.by_seq([1])
        assert kept.message == message
        assert (kept.session, kept.key, kept.tokens, kept.counter) == ("s", "printed-1", 7, COUNTER)
        assert store.messages.by_key("printed-1") == kept

    def test_what_a_message_does_not_say_is_still_unsaid(self, store: Store) -> None:
        keep(store, said(""))
        (kept,) = store.messages.by_seq([1])
        assert kept.message == Message(role=Role.USER, text="")
        assert kept.message.failed is None

    def test_half_a_surrogate_pair_becomes_a_replacement_character(self, store: Store) -> None:
        keep(store, said("a\ud83d\ude00\udc00b", identity="x", key="k\ud800"), to="s\ud800")
        (kept,) = store.messages.by_seq([1])
        assert kept.message.text == "a���b"
        assert (kept.key, kept.session) == ("k�", "s�")

    def test_an_absurd_exit_code_is_dropped_and_the_message_kept(self, store: Store) -> None:
        keep(store, result("a", exit_code=10**30), result("b", exit_code=2**63 - 1))
        assert [kept.message.exit_code for kept in store.messages.by_seq([1, 2])] == [None, 2**63 - 1]

    def test_messages_are_numbered_in_the_order_they_arrive_over_all_sessions(self, store: Store) -> None:
        keep(store, said("one"), said("two"), to="a")
        keep(store, said("three"), to="b")
        assert texts(store.messages.by_seq([1, 2, 3])) == ["one", "two", "three"]

    def test_each_message_is_told_to_be_new_or_known(self, store: Store) -> None:
        assert keep(store, said("one"), said("two")) == (True, True)
        assert keep(store, said("two"), said("three"), said("one"), said("three")) == (False, True, False, False)
        assert next_batch(store).through == 3

    def test_a_known_message_is_left_as_it_is_also_when_another_session_carries_a_copy(self, store: Store) -> None:
        keep(store, said("one", identity="same"), to="a")
        assert keep(store, said("edited", identity="same"), to="b") == (False,)
        assert texts(store.messages.by_seq([1])) == ["one"]
        assert store.batches.unobserved("b", max_tokens=100) is None
        assert store.sessions.find("b") is not None

    def test_a_session_is_any_text_and_there_once_something_is_appended_to_it(self, store: Store) -> None:
        """S1.13: the key is free text, created on first use."""
        name = "anything: spaces, 'quotes', ünïcode and 🗝"
        assert store.sessions.find(name) is None
        assert keep(store, to=name) == ()
        assert store.sessions.find(name) == session(name)

    def test_what_is_known_of_a_session_is_merged(self, store: Store) -> None:
        first = Session(id="s", agent="claude-code", cwd="/src/app", branch="main", title="First")
        later = Session(id="s", agent="codex", cwd="/src/app/lib", branch="topic", model="m-1", parent="p")
        for known in (first, later):
            store.messages.append(known, [], counter=COUNTER, now=NOW)
        assert store.sessions.find("s") == first.merged(later)


class TestFormerIdentities:
    """T69: what a store of schema 1 has is recognised, though its results went by another identity."""

    def test_a_message_known_by_its_former_identity_is_not_taken_in_again(self, store: Store) -> None:
        keep(store, said("one"), said("3 failed", identity="formerly"))
        renamed = replace(said("3 failed", identity="now"), formerly=digest("formerly"))
        assert keep(store, renamed, said("two")) == (False, True)
        assert texts(store.messages.by_seq(range(9))) == ["one", "3 failed", "two"]

    def test_it_goes_by_its_present_identity_from_then_on(self, store: Store) -> None:
        """A piece of the transcript does not tell the former one."""
        keep(store, said("3 failed", identity="formerly"))
        renamed = replace(said("3 failed", identity="now"), formerly=digest("formerly"))
        keep(store, renamed)
        assert keep(store, said("3 failed", identity="now")) == (False,)
        assert store.messages.append(session(), [renamed], counter=COUNTER, now=NOW, opening=1).new == (False,)


class TestBeginsWith:
    def begins(self, store: Store, *identities: str, name: str = "s") -> bool:
        return store.messages.begins_with(name, [digest(identity) for identity in identities])

    def test_a_session_begins_with_what_it_has_and_may_go_on_with(self, store: Store) -> None:
        keep(store, said("one"), said("two"), said("three"))
        assert self.begins(store)
        assert self.begins(store, "one", "two")
        assert self.begins(store, "one", "two", "three", "four")

    def test_a_session_does_not_begin_with_other_messages_nor_in_another_order(self, store: Store) -> None:
        keep(store, said("one"), said("two"), said("three"))
        assert not self.begins(store, "one", "other")
        assert not self.begins(store, "two")
        assert not self.begins(store, "one", "three", "two")

    def test_a_session_without_messages_begins_with_anything(self, store: Store) -> None:
        assert self.begins(store, "one", name="unheard of")
        keep(store, to="empty")
        assert self.begins(store, "one", name="empty")

    def test_what_another_session_keeps_or_what_comes_twice_is_passed_over(self, store: Store) -> None:
        keep(store, said("copied"), to="a")
        keep(store, said("copied"), said("one"), said("two"))
        assert self.begins(store, "copied", "one", "one", "two")
        assert not self.begins(store, "copied", "two")

    def test_a_session_that_begins_otherwise_takes_nothing_in(self, store: Store) -> None:
        """F20: two who each found a name free; who comes second is told, in the transaction that would write."""

        def begin(*messages: Incoming) -> tuple[bool, ...]:
            return store.messages.append(session(), messages, counter=COUNTER, now=NOW, opening=2).new

        assert begin(said("go"), said("3 failed"), said("thanks")) == (True, True, True)
        assert begin(said("go"), said("3 failed"), said("bye")) == (False, False, True)
        with pytest.raises(SessionTaken):
            begin(said("go"), said("all passed"), said("fine"))
        assert texts(store.messages.by_seq(range(9))) == ["go", "3 failed", "thanks", "bye"]
        assert keep(store, said("all passed")) == (True,), "without an opening nothing is asked"

    def test_a_session_that_takes_nothing_in_is_not_changed(self, store: Store) -> None:
        keep(store, said("go"), said("3 failed"))
        with pytest.raises(SessionTaken):
            store.messages.append(
                replace(session(), title="Elsewhere"),
                [said("other"), said("words")],
                counter=COUNTER,
                now=LATER,
                opening=2,
            )
        (summary,) = store.sessions.summaries()
        assert (summary.session, summary.seen_at) == (session(), NOW)


class TestKnown:
    """What was taken in, by identity, and what came last."""

    def test_each_identity_is_known_or_not(self, store: Store) -> None:
        keep(store, said("one"))
        keep(store, said("two"), to="other")
        asked = [digest(text) for text in ("two", "three", "one", "three")]
        assert store.messages.known(asked) == (True, False, True, False)
        assert store.messages.known([]) == ()

    def test_as_many_as_anybody_may_ask_for(self, store: Store) -> None:
        """SQLite takes no more than 999 values at once where it is built so."""
        keep(store, said("1200"))
        assert store.messages.known([digest(str(number)) for number in range(1500)]).index(True) == 1200

    def test_the_newest_messages_are_the_last_to_arrive(self, store: Store) -> None:
        keep(store, said("one"), said("two", agent="side"), said("three"))
        keep(store, said("elsewhere"), to="other")
        assert texts(store.messages.newest("s", 2)) == ["two", "three"]
        assert texts(store.messages.newest("s", 9)) == ["one", "two", "three"]
        assert store.messages.newest("s", 0) == store.messages.newest("unheard of", 3) == ()
