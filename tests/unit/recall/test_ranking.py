"""Ranking of messages and rows by the words that they and their neighbours contain."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.observation import PINNED, Logged, Observation, Priority, Type
from omcli.memory.search import MessagePlace, Nearest, WordMatch
from omcli.recall import ranking
from omcli.recall.ranking import Match, Query, Word
from tests.material import row


def word(text: str, *messages: int, rows: Sequence[int] = (), weight: float = 1) -> Word:
    return Word(text=text, weight=weight, messages=frozenset(messages), rows=frozenset(rows))


def place(
    seq: int,
    *,
    session: int = 1,
    is_person: bool = True,
    is_turn: bool = True,
    tokens: int = 30,
    at: str | None = None,
    wanted: bool = True,
) -> MessagePlace:
    return MessagePlace(
        seq=seq, session=session, is_person=is_person, is_turn=is_turn, tokens=tokens, at=at, is_wanted=wanted
    )


def ranked(
    words: Sequence[Word],
    places: Sequence[MessagePlace],
    rows: Sequence[Logged] = (),
    *,
    with_messages: bool = True,
    query: str = "when does the tide turn back",
) -> list[Match]:
    return ranking.rank(Query.of(query), words, places, rows, with_messages=with_messages)


def seqs(matches: Sequence[Match]) -> list[int | None]:
    return [match.seq for match in matches]


class TestWeight:
    def test_a_rare_word_weighs_more_and_a_common_one_less(self) -> None:
        query = Query.of("redis zebra work")
        matches = [WordMatch(messages=frozenset(), rows=frozenset(), count=count) for count in (50, 1, 1)]
        redis, zebra, work = ranking.weight(query, matches, size=100)
        assert zebra.weight > work.weight > redis.weight > 0

    @given(st.floats(0, 1e7), st.integers(0, 10**6))
    def test_a_weight_is_never_negative_however_wrong_the_estimates(self, count: float, size: int) -> None:
        match = WordMatch(messages=frozenset(), rows=frozenset(), count=count)
        [found] = ranking.weight(Query.of("zebra"), [match], size=size)
        assert found.weight >= 0


class TestCandidates:
    def test_those_with_the_heaviest_words_come_first_and_then_the_newest(self) -> None:
        words = [word("a", 1, 2, 3, weight=1), word("b", 1, weight=2)]
        assert ranking.candidates(words, most=2) == ([1, 3], [])


class TestMessages:
    def test_more_words_rank_before_fewer(self) -> None:
        words = [word("a", 1, 2), word("b", 2)]
        assert seqs(ranked(words, [place(1), place(2)]))[0] == 2

    def test_an_answer_beside_its_question_is_found_and_a_far_one_less(self) -> None:
        """A question and its answer rarely share words."""
        words = [word("a", 5), word("b", 5), word("c", 4)]
        matches = ranked(words, [place(seq) for seq in range(1, 10)])
        assert seqs(matches)[0] == 5
        scores = {match.seq: match.score for match in matches}
        assert scores[6] > scores[7] > scores[8] > 0
        assert not next(match for match in matches if match.seq == 6).words

    def test_for_a_name_only_what_has_it_is_a_match(self) -> None:
        assert seqs(ranked([word("a", 2)], [place(1), place(2), place(3)], query="E1234")) == [2]

    def test_neighbours_of_another_session_or_day_lend_no_words(self) -> None:
        places = [place(1, at="2026-03-01T10:00:00.000Z"), place(2, at="2026-03-02T10:00:00.000Z"), place(3, session=2)]
        assert seqs(ranked([word("a", 1)], places)) == [1]

    def test_calls_and_results_neither_lend_nor_borrow(self) -> None:
        tools = [place(2, is_turn=False), place(3, is_turn=False)]
        assert seqs(ranked([word("a", 1)], [place(1), *tools])) == [1]
        assert seqs(ranked([word("a", 2)], [place(1), *tools])) == [2]

    def test_a_long_answer_lends_less_than_a_short_one(self) -> None:
        short = ranked([word("a", 1)], [place(1), place(2)])
        long = ranked([word("a", 1)], [place(1, tokens=900), place(2)])
        assert short[1].score > long[1].score

    def test_people_rank_before_agents(self) -> None:
        matches = ranked([word("a", 1, 9)], [place(1, is_person=False), place(9)])
        assert seqs(matches)[0] == 9

    def test_what_is_not_wanted_lends_its_words_but_is_no_match(self) -> None:
        assert seqs(ranked([word("a", 1)], [place(1, wanted=False), place(2)])) == [2]

    @given(st.lists(st.tuples(st.integers(1, 40), st.booleans(), st.integers(0, 2000)), unique_by=lambda each: each[0]))
    def test_ranks_are_in_order_and_each_message_is_there_once(self, given_: list[tuple[int, bool, int]]) -> None:
        places = [place(seq, is_person=person, tokens=tokens) for seq, person, tokens in sorted(given_)]
        words = [
            word("a", *(seq for seq, _, _ in given_ if seq % 2)),
            word("b", *(seq for seq, _, _ in given_ if seq % 3)),
        ]
        matches = ranked(words, places)
        assert [match.score for match in matches] == sorted((match.score for match in matches), reverse=True)
        assert len(set(seqs(matches))) == len(matches)


class TestRows:
    def test_a_row_is_evidence_for_its_message_and_stands_for_it(self) -> None:
        fact = Logged(position=7, observation=row(7, sources=(2,)))
        matches = ranked([word("a", 1, 2, rows=[7])], [place(1), place(2, tokens=60)], [fact])
        assert [(match.seq, match.row) for match in matches[:1]] == [(2, fact)]

    def test_a_row_that_says_less_than_its_message_does_not_stand_for_it(self) -> None:
        fact = Logged(position=7, observation=row(7, sources=(2,)))
        [match] = ranked([word("a", 2, rows=[7]), word("b", 2)], [place(2)], [fact])
        assert (match.seq, match.row, match.words) == (2, None, ("a", "b"))

    def test_a_rule_of_the_user_ranks_first_where_it_matches(self) -> None:
        """A standing wish holds for every task that it is about."""
        rule = Logged(position=1, observation=row(1, type=Type.INSTRUCTION, sources=(1,)))
        fact = Logged(position=2, observation=row(2, sources=(9,)))
        matches = ranked([word("a", 1, 9, rows=[1, 2])], [place(1), place(9)], [rule, fact])
        assert matches[0].row == rule

    def test_a_decision_ranks_first_if_the_query_asks_why(self) -> None:
        decision = Logged(position=1, observation=row(1, type=Type.DECISION, sources=(1,)))
        words, places = [word("a", 1, 9, rows=[1])], [place(1, tokens=300), place(9)]
        assert seqs(ranked(words, places, [decision], query="what was dropped that day")) == [9, 1]
        assert seqs(ranked(words, places, [decision], query="why was it dropped that day")) == [1, 9]

    @pytest.mark.parametrize(
        "query",
        [
            "what went wrong with it that day",
            "the day when it failed",
            "it didn't work that day",
            "the problem of that day",
            "which error came that day",
        ],
    )
    def test_a_failure_ranks_first_if_the_query_asks_what_went_wrong(self, query: str) -> None:
        failure = Logged(position=1, observation=row(1, type=Type.COMMAND_ERROR, sources=(1,)))
        words, places = [word("a", 1, 9, rows=[1])], [place(1, tokens=300), place(9)]
        assert seqs(ranked(words, places, [failure], query="what was done that day")) == [9, 1]
        assert seqs(ranked(words, places, [failure], query=query)) == [1, 9]

    def test_a_row_about_a_call_is_shown_in_place_of_the_call_and_not_of_its_result(self) -> None:
        read = Logged(position=7, observation=row(7, type=Type.FILE_READ, sources=(2, 3)))
        words, places = [word("a", 2, 3, rows=[7])], [place(2), place(3)]
        assert {match.seq: match.row for match in ranked(words, places, [read])} == {2: read, 3: None}

    @pytest.mark.parametrize("sources", [(), (99,)])
    def test_a_row_without_messages_stands_for_itself(self, sources: tuple[int, ...]) -> None:
        note = Logged(position=1, observation=row(1, sources=sources))
        [match] = ranked([word("a", rows=[1])], [], [note])
        assert (match.seq, match.row, match.words) == (None, note, ("a",))

    def test_rows_alone_are_ranked_by_themselves_and_their_messages(self) -> None:
        one, other = (Logged(position=at, observation=row(at, sources=(at,))) for at in (1, 9))
        words = [word("a", 1, 9, rows=[1, 9]), word("b", 9)]
        matches = ranked(words, [place(1), place(9)], [one, other], with_messages=False)
        assert [match.row for match in matches] == [other, one]


class TestMerging:
    def test_places_count_from_0_and_the_sum_decides(self) -> None:
        """T63"""
        scores = ranking.merged("ab", "cba")
        assert list(scores) == ["a", "b", "c"]
        assert (round(scores["a"], 6), round(scores["b"], 6)) == (0.032796, 0.032787)

    def test_a_pinned_row_comes_first_among_equal_places(self) -> None:
        """T63"""
        factors = {"pinned": ranking.worth(match_of(row(1, tags=(PINNED,))))}
        scores = ranking.merged(["observation"], ["pinned"], prior=lambda key: factors.get(key, 1))
        assert list(scores) == ["pinned", "observation"]

    def test_two_first_places_outweigh_a_pinned_row_of_high_priority_at_rank_5(self) -> None:
        """T63"""
        factor = ranking.worth(match_of(row(1, tags=(PINNED,), priority=Priority.HIGH)))
        others = [f"other {number}" for number in range(5)]
        scores = ranking.merged(
            ["row"], ["row", *others[1:], "pinned"], prior=lambda key: factor if key == "pinned" else 1
        )
        assert (round(scores["row"], 4), round(scores["pinned"], 4)) == (0.0333, 0.0277)
        assert next(iter(scores)) == "row"

    def test_among_equal_scores_the_first_seen_comes_first(self) -> None:
        """T63"""
        assert list(ranking.merged("ab", "ba")) == ["a", "b"]

    @given(st.lists(st.permutations(range(8)), min_size=2, max_size=2))
    def test_what_is_better_in_both_rankings_is_better(self, rankings: list[list[int]]) -> None:
        order = list(ranking.merged(*rankings, weights=(1, 0.3)))
        for one in range(8):
            for other in range(8):
                if all(each.index(one) < each.index(other) for each in rankings):
                    assert order.index(one) < order.index(other)

    def test_a_row_that_stands_for_its_message_has_no_prior(self) -> None:
        assert ranking.worth(match_of(row(1, priority=Priority.HIGH), seq=1)) == 1
        assert ranking.worth(match_of(None, seq=1)) == 1


class TestVectors:
    QUERY = Query.of("where does the yellow lorry stop today")

    def rank(self, nearest: Nearest | None, *words: Word, query: Query = QUERY) -> list[int]:
        places = [place(seq) for seq in range(1, 9)]
        found = ranking.rank(query, words, places, [], with_messages=True, nearest=nearest)
        return [match.seq or 0 for match in found]

    def test_what_is_near_is_found_without_a_word_of_the_query(self) -> None:
        assert self.rank(None) == []
        assert self.rank(Nearest(messages={7: 0.9, 1: 0.5}, rows={}))[0] == 7

    def test_words_outweigh_meaning(self) -> None:
        found = self.rank(Nearest(messages={8: 0.9, 7: 0.5}, rows={}), word("lorry", 1))
        assert found.index(1) < found.index(8)

    def test_what_has_both_comes_before_what_has_one(self) -> None:
        words = word("lorry", 1, 8)
        assert self.rank(None, words)[0] == 8
        assert self.rank(Nearest(messages={1: 0.9, 4: 0.1}, rows={}), words)[0] == 1

    def test_a_neighbour_of_what_is_near_may_be_the_answer_to_a_question(self) -> None:
        found = self.rank(Nearest(messages={4: 0.9, 8: 0.1}, rows={}))
        assert found[0] == 4
        assert {3, 5} <= set(found)
        assert self.rank(Nearest(messages={4: 0.9}, rows={}), query=Query.of("lorry")) == [4]


def match_of(found: Observation | None, seq: int | None = None) -> Match:
    return Match(score=1, words=(), seq=seq, row=None if found is None else Logged(position=1, observation=found))
