"""Promises of every store about `SearchIndex`: what is found by which words, and that it is always up to date."""

from __future__ import annotations

import sys
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.base.record import replace
from omcli.memory.changes import OperationKind, OperationWrite
from omcli.memory.message import Role
from omcli.memory.observation import LogQuery, Type
from omcli.memory.ports import Store
from omcli.memory.reflection import Scope
from omcli.memory.session import NO_PROJECT
from omcli.recall.ranking import Query
from omcli.sqlite.dialect import index_text
from tests.contract.keeping import keep
from tests.fakes import MemoryStore
from tests.material import LATER, NOW, call, result, row, row_id, said, session


def with_word(store: Store, word: str, **narrowed: object) -> list[int]:
    """`seq` of the messages with a word."""
    [match] = store.index.match([word], LogQuery(**narrowed), most=100)  # type: ignore[arg-type]
    return sorted(match.messages)


class TestAnswered:
    def test_replies_to_a_person_end_where_a_person_speaks_again(self, store: Store) -> None:
        roles = (Role.USER, Role.ASSISTANT, Role.CALL, Role.ASSISTANT, Role.USER, Role.ASSISTANT)
        keep(store, *(said(f"turn {number}", role=role) for number, role in enumerate(roles)))
        keep(store, said("elsewhere", role=Role.ASSISTANT), to="t")
        assert store.index.answered([1, 2, 5, 99]) == {1: (2, 4), 5: (6,)}

    def test_a_call_is_answered_by_its_results(self, store: Store) -> None:
        keep(store, call("a"), call("b"), result("b"), result("a"), call("c"))
        assert store.index.answered(range(1, 6)) == {1: (4,), 2: (3,)}

    def test_messages_of_sessions_that_run_at_the_same_time_are_not_counted(self, store: Store) -> None:
        """As many as an answer may be away from its question."""
        keep(store, said("who?"))
        keep(store, *(said(f"{number}") for number in range(400)), to="t")
        keep(store, said("Ada", role=Role.ASSISTANT))
        assert store.index.answered([1]) == {1: (402,)}

    def test_a_subagent_answers_only_its_own_instructions(self, store: Store) -> None:
        keep(store, said("delegate"), said("look", agent="a1"), said("found", role=Role.ASSISTANT, agent="a1"))
        assert store.index.answered([1, 2]) == {2: (3,)}


class TestMatch:
    @pytest.mark.parametrize(
        ("text", "word"),
        [
            ("We cached it.", "cache"),
            ("the cache", "caching"),
            ("un café", "cafe"),
            ("un cafe", "café"),
            ("call auth_token() now", "auth"),
            ("see src/foo/bar.py", "bar"),
            ("class SqliteTextSearch", "text"),
            (f"in {'/deep' * 40}/harbour", "harbour"),
            ("getUserName()", "getusername"),
            ("error E1234!", "e1234"),
            ("数据库迁移", "数据"),
            ("数据库迁移", "库"),
            ("東京都", "都"),
            ("한국어 문서", "국어"),
            ("über Straßen", "straßen"),
        ],
    )
    def test_a_word_is_found_in_other_forms_in_names_and_in_any_script(
        self, store: Store, text: str, word: str
    ) -> None:
        keep(store, said("something else"), said(text))
        assert with_word(store, word) == [2]

    def test_the_speaker_counts_as_a_word(self, store: Store) -> None:
        message = said("hello")
        keep(store, replace(message, message=replace(message.message, name="Caro")))
        assert with_word(store, "caro") == [1]

    def test_rows_are_found_hidden_or_not(self, store: Store) -> None:
        store.rows.add(row(1, text="uses Redis"), row(2, text="dropped redis", superseded_by=row_id(1)))
        [match] = store.index.match(["redis"], LogQuery(), most=100)
        assert (sorted(match.rows), match.count) == ([1, 2], 2)

    def test_the_newest_are_given_and_all_are_counted(self, store: Store) -> None:
        keep(store, *(said(f"word {number}") for number in range(20)))
        [match] = store.index.match(["word"], LogQuery(), most=5)
        assert sorted(match.messages) == [16, 17, 18, 19, 20]
        assert match.count == 20

    def test_only_the_numbers_of_a_session_are_searched(self, store: Store) -> None:
        keep(store, said("tide one"))
        keep(store, said("tide two"), to="t")
        keep(store, said("tide three"))
        assert with_word(store, "tide", session="s") == [1, 3]
        assert with_word(store, "tide", session="t") == [2]
        assert store.index.match(["tide"], LogQuery(session="s"), most=1)[0].messages == {3}
        assert with_word(store, "tide", session="unknown") == []
        assert store.index.size(LogQuery(session="t")) == 1
        assert store.index.size(LogQuery()) == 3
        assert store.index.size(LogQuery(session="unknown")) == 0

    @given(st.text(max_size=40))
    def test_any_text_can_be_searched_for(self, text: str) -> None:
        """Quotes, operators, colons and parentheses are not syntax, in any script."""
        with MemoryStore() as store:
            keep(store, said(text or "-"))
            store.rows.add(row(1, text=text))
            words = Query.of(text).words
            matches = store.index.match(words, LogQuery(), most=10)
            assert len(matches) == len(words)
            store.index.passages([text, "x"], words)

    def test_an_encoded_file_is_not_searched(self, store: Store) -> None:
        keep(store, said(f"see {'Qm9v' * 100}, the photo"))
        assert with_word(store, "photo") == [1]
        assert with_word(store, "qm9v" * 100) == []


class TestAlwaysFresh:
    def test_hidden_messages_and_rows_are_not_found_until_they_are_restored(self, store: Store) -> None:
        keep(store, said("the tide is high"))
        store.rows.add(row(1, text="tide", sources=(1,)))
        change = OperationWrite(verb=OperationKind.FORGET, forgotten=(row_id(1),), messages=(1,))
        done = store.operations.change(change, now=NOW)
        [match] = store.index.match(["tide"], LogQuery(), most=10)
        assert (match.messages, match.rows) == (frozenset(), frozenset())
        store.operations.undo(done.number, now=LATER)
        [match] = store.index.match(["tide"], LogQuery(), most=10)
        assert (len(match.messages), len(match.rows)) == (1, 1)

    @pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
    def test_an_interrupt_while_a_message_is_indexed_is_raised_and_nothing_is_kept(
        self, store: Store, interrupt: type[BaseException]
    ) -> None:
        """F93: SQLite would make a failure of its own of it."""

        def interrupts(frame: FrameType, event: str, _: object) -> None:
            if event == "c_call" and frame.f_code is index_text.__code__:
                sys.setprofile(None)
                raise interrupt

        sys.setprofile(interrupts)
        with pytest.raises(interrupt):
            keep(store, said("tide"))
        assert with_word(store, "tide") == []
        assert keep(store, said("tide")) == (True,)
        assert len(with_word(store, "tide")) == 1

    def test_an_index_of_which_every_word_was_deleted_is_sound(self, store: Store) -> None:
        """FTS5 goes on counting what it wrote."""
        store.rows.add(row(1))
        forgetting = OperationWrite(verb=OperationKind.FORGET, scope=Scope(), forgotten=(row_id(1),))
        store.operations.change(forgetting, now=NOW, for_good=True)
        store.index.check(thoroughly=True)

    def test_a_message_appended_again_is_found_once(self, store: Store) -> None:
        keep(store, said("tide"))
        keep(store, said("tide"))
        assert with_word(store, "tide") == [1]


class TestAround:
    def test_neighbours_are_those_of_the_same_session(self, store: Store) -> None:
        keep(store, *(said(f"s{number}") for number in range(6)))
        keep(store, said("t0"), said("t1"), to="t")
        found = store.index.around([2, 8], LogQuery(), reach=1)
        assert [place.seq for place in found] == [1, 2, 3, 7, 8]
        assert store.index.around([99], LogQuery(), reach=3) == ()

    def test_messages_of_sessions_that_run_at_the_same_time_are_not_counted(self, store: Store) -> None:
        for number in range(8):
            keep(store, said(f"{number}"), to="st"[number % 2])
        assert [place.seq for place in store.index.around([4, 5], LogQuery(), reach=1)] == [3, 5, 7, 2, 4, 6]

    def test_people_are_told_from_agents_and_tools(self, store: Store) -> None:
        keep(store, said("a"), said("b", role=Role.ASSISTANT), said("c", agent="sub"), said("d", role=Role.RESULT))
        places = store.index.around([1, 2, 3, 4], LogQuery(), reach=0)
        assert [place.is_person for place in places] == [True, False, False, False]
        assert [place.is_turn for place in places] == [True, True, True, False]

    @pytest.mark.parametrize(
        ("narrowed", "wanted"),
        [
            ({}, [1, 2, 3]),
            ({"session": "s"}, [1, 2]),
            ({"other_than": "s"}, [3]),
            ({"project": "/src/app"}, [1, 2]),
            ({"project": NO_PROJECT}, [3]),
            ({"since": LATER}, [2]),
            ({"until": LATER}, [1]),
        ],
    )
    def test_a_query_selects_messages(self, store: Store, narrowed: dict[str, str], wanted: list[int]) -> None:
        keep(store, said("a", at=NOW), said("b", at=LATER))
        message = said("c")
        store.messages.append(session("t", cwd=None), [message], counter="words", now=NOW)
        places = store.index.around([1, 2, 3], LogQuery(**narrowed), reach=0)  # type: ignore[arg-type]
        assert [place.seq for place in places if place.is_wanted] == wanted


class TestRows:
    def test_a_query_selects_rows_by_their_columns(self, store: Store) -> None:
        store.rows.add(row(1, type=Type.DECISION), row(2), row(3, type=Type.DECISION, superseded_by=row_id(1)))
        found = store.index.rows([1, 2, 3, 9], LogQuery(types=(Type.DECISION,)))
        assert [logged.position for logged in found] == [1]
        found = store.index.rows([1, 2, 3], LogQuery(types=(Type.DECISION,), hidden=True))
        assert [logged.position for logged in found] == [1, 3]

    def test_use_is_recorded(self, store: Store) -> None:
        store.rows.add(row(1), row(2))
        store.index.mark_used([row_id(2)], now=LATER)
        assert [store.rows.find(row_id(number)).last_used_at for number in (1, 2)] == [None, LATER]


class TestPassages:
    @pytest.mark.parametrize(
        ("text", "words", "line", "found"),
        [
            ("intro\nwe cached the token\nend", ["cache"], "we cached the token", ["cached"]),
            ("a token\ncache of a token\n", ["token", "cache"], "cache of a token", ["cache", "token"]),
            ("nothing here\nnor here", ["token"], "nothing here", []),
            ("", ["token"], "", []),
            ("Überall Café", ["cafe"], "Überall Café", ["Café"]),
            ("标题\n使用数据库迁移", ["数据", "据库", "库"], "使用数据库迁移", ["数据", "据库", "库"]),
            ("auth_token = 1", ["auth", "token"], "auth_token = 1", ["auth", "token"]),
            ("a \x02b\x03 cache", ["cache"], "a  b  cache", ["cache"]),
            ("cities", ["city"], "cities", ["cities"]),
            ("agent\ntype AgentKind = 1", ["agent", "kind"], "type AgentKind = 1", ["Agent", "Kind"]),
        ],
    )
    def test_the_line_with_most_of_the_words_is_given_with_their_places(
        self, store: Store, text: str, words: list[str], line: str, found: list[str]
    ) -> None:
        [passage] = store.index.passages([text], words)
        assert (passage.text, [passage.text[begins:ends] for begins, ends in passage.words]) == (line, found)

    def test_of_a_long_line_the_part_around_the_words_is_given(self, store: Store) -> None:
        [passage, first] = store.index.passages([f"{'x ' * 500}cache {'y ' * 500}", "z" * 1000], ["cache"])
        assert passage.text.startswith("…x")
        assert passage.text.endswith("y …")
        assert [passage.text[begins:ends] for begins, ends in passage.words] == ["cache"]
        assert len(passage.text) == 302
        assert first.text == f"{'z' * 300}…"

    @pytest.mark.parametrize(
        ("lead", "shown"),
        [
            ("## Why the cache?", "## Why the cache? It is slow. - 3 s a page"),
            ("**The cache**", "**The cache** It is slow. - 3 s a page"),
            ("Two reasons for the cache:", "Two reasons for the cache: It is slow. - 3 s a page"),
            ("**Why a cache?**", "**Why a cache?** It is slow. - 3 s a page"),
            ("The cache stays.", "The cache stays."),
        ],
    )
    def test_a_line_that_only_leads_to_others_is_shown_with_them(self, store: Store, lead: str, shown: str) -> None:
        """Up to the next heading: it often repeats the question, and the answer is below it."""
        [passage] = store.index.passages([f"Hello.\n{lead}\n\nIt is slow.\n- 3 s a page\n# Next\nMore."], ["cache"])
        assert passage.text == shown

    def test_what_a_long_answer_leads_to_is_cut(self, store: Store) -> None:
        [passage] = store.index.passages(["About the cache:\n" + "a line of text\n" * 100], ["cache"])
        assert passage.text.startswith("About the cache: a line of text a line")
        assert 250 < len(passage.text) <= 302

    def test_each_text_has_its_passage(self, store: Store) -> None:
        passages = store.index.passages(["one cache", "two", "three cache"], ["cache"])
        assert [passage.text for passage in passages] == ["one cache", "two", "three cache"]
        assert [passage.text for passage in store.index.passages(["one", "two"], [])] == ["one", "two"]
