"""Folding over all sessions: what is left alone, what is folded together, and what may come of it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.message import rows_tokens
from omcli.memory.observation import Draft, Observation, Type
from omcli.memory.reflection import Reflected, RowOutline
from omcli.operations.reflect.cross_session import GLOBAL, GlobalBatch, batches_of, end_of_age, limit_tokens
from omcli.tokenizers import counter
from tests import strategies
from tests.fakes import WordCounter
from tests.unit.reflectors.folded_rows import row, texts

NOW = "2026-06-01T12:00:00.000Z"
DUET = counter("chars-3.2")
DATES = {1: "2026-05-31", 5: "2026-05-27", 7: "2026-05-25", 30: "2026-05-02", 365: "2025-06-01"}


def aged(number: int, days: int, text: str = "", **columns: object) -> Observation:
    """A row that is so many days old."""
    told = replace(row(number, text or f"row {number}"), event_at=f"{DATES[days]}T12:00:00.000Z", **columns)  # type: ignore[arg-type]
    return replace(told, tokens=DUET.text(told.text), counter=DUET.name)


def divided(*rows: Observation, most: int = 1000) -> list[GlobalBatch]:
    """The batches of rows, by their places in the order given."""
    outlines = [
        RowOutline(
            project=row.project,
            dated=row.dated,
            position=position,
            tokens=row.tokens if row.counter == DUET.name else row.text,
        )
        for position, row in enumerate(rows)
    ]
    outlines.sort(key=lambda each: (each.project is not None, each.project or "", each.dated))
    return list(batches_of(outlines, batch_tokens=most, counter=DUET))


def batches(*rows: Observation, most: int = 1000) -> list[list[str]]:
    """Texts of the rows folded together."""
    return [texts(rows[position] for position in batch.rows) for batch in divided(*rows, most=most)]


def test_rows_are_old_from_the_second_on_at_which_they_reach_the_age() -> None:
    """T45, S2.25: milliseconds don't count, and an age may be longer than time."""
    before = end_of_age(NOW, 3)
    assert "2026-05-29T12:00:00.999Z" < before <= "2026-05-29T12:00:01.000Z"
    assert "2026-06-01T11:59:59.999" < end_of_age(NOW, 0.5 / 86400) <= "2026-06-01T12:00:00.000"
    assert end_of_age(NOW, 1e6) == end_of_age(NOW, 1e300) == ""


def test_batches_hold_as_much_as_fits() -> None:
    """T47, S2.27: six rows of 40 characters, 13 tokens each, 30 to a batch."""
    found = divided(*(aged(number, 30, f"{number}" * 40) for number in range(1, 7)), most=30)
    assert [(len(batch.rows), batch.tokens) for batch in found] == [(2, 26)] * 3


def test_a_row_larger_than_a_batch_is_one_of_its_own() -> None:
    """T47: a row of 1,000 characters and one of 20."""
    small, giant = "s" * 20, "g" * 1000
    assert batches(aged(1, 5, giant), aged(2, 7, small), most=50) == [[small], [giant]]
    assert batches(aged(1, 7, giant), aged(2, 5, small), most=50) == [[giant], [small]]


def test_sessions_of_one_project_are_folded_together_and_projects_are_not() -> None:
    """T47: three sessions."""
    of_three = [aged(number, 30, session=f"s{number}") for number in (1, 2, 3)]
    assert len(divided(*of_three)) == 1
    found = divided(*of_three, aged(4, 365, project="/other"), aged(5, 7, project=None))
    assert [(batch.project, len(batch.rows)) for batch in found] == [("/other", 1), ("/src/app", 3), (None, 1)]


def test_of_no_rows_there_are_no_batches() -> None:
    """T47, T48."""
    assert batches() == []


@given(st.lists(strategies.observations(), max_size=12), st.integers(1, 90))
def test_every_row_is_in_one_batch(rows: list[Observation], most: int) -> None:
    """S2.27: oldest first, and no batch of several is too large."""
    found = divided(*rows, most=most)
    assert sorted(position for batch in found for position in batch.rows) == list(range(len(rows)))
    for batch in found:
        of_batch = [rows[position] for position in batch.rows]
        assert len(of_batch) == 1 or batch.tokens <= most
        assert batch.tokens == rows_tokens(of_batch, DUET)
        assert {row.project for row in of_batch} == {batch.project}
        dates = [row.dated for row in of_batch]
        assert dates == sorted(dates)
        assert (batch.begins, batch.ends) == (dates[0], dates[-1])


# ---- what may come of a batch


WORDS = "tide berth crane rope anchor hull pilot quay mast buoy".split()


def drafts(*lengths: int, size: int = 100) -> tuple[Reflected, tuple[Observation, ...]]:
    """Reflections of so many words, each on one of the rows of `size` words, and the rows."""
    rows = tuple(row(number, " ".join([WORDS[number]] * size)) for number in range(len(lengths)))
    told = [
        Draft(
            text=" ".join([WORDS[number]] * length),
            type=Type.FACT,
            importance=5,
            sources=(number,),
            replaces=(rows[number].id,),
            supports=(rows[number].id,),
        )
        for number, length in enumerate(lengths)
    ]
    return Reflected(reflections=tuple(told)), rows


def capped(given_drafts: tuple[Reflected, tuple[Observation, ...]], target: int) -> Reflected:
    """Reflections after limiting their tokens."""
    reflected, rows = given_drafts
    return limit_tokens(reflected, rows, target=target, counter=WordCounter())


def test_reflections_that_fit_are_tagged_and_left_as_they_are() -> None:
    """S2.28."""
    given_drafts = drafts(40, 50)
    found = capped(given_drafts, 90)
    assert texts(found.reflections) == texts(given_drafts[0].reflections)
    assert [draft.tags for draft in found.reflections] == [(GLOBAL,)] * 2
    assert found.dropped == ()


def test_reflections_that_do_not_fit_are_cut_to_their_share() -> None:
    """S2.28: only those that are longer."""
    found = capped(drafts(20, 200, size=300), 120)
    short, long = texts(found.reflections)
    assert short == " ".join(["tide"] * 20)
    assert long == f"{' '.join(['berth'] * 57)}… [truncated {143 * 6} chars]"


def test_what_is_written_without_spaces_is_cut_inside() -> None:
    """All of it behind the only space was left out."""
    said = "Agent: " + "失败的原因" * 200
    chars = counter("chars-4")
    told = replace(drafts(1)[0], reflections=(replace(drafts(1)[0].reflections[0], text=said),))
    (found,) = limit_tokens(told, (row(0, said),), target=60, counter=chars).reflections
    kept = found.text.partition("…")[0]
    assert (said.startswith(kept), found.text.endswith(f"… [truncated {len(said) - len(kept)} chars]")) == (True, True)
    assert 30 < chars.text(found.text) <= 60
    assert chars.text(kept) > 30


def test_the_last_reflections_go_where_there_is_no_room_and_their_rows_stay() -> None:
    """S2.28, XA7: a row is hidden only by a row that tells it; the first reflection stays."""
    found = capped(drafts(30, 30, 30), 45)
    assert [draft.replaces for draft in found.reflections] == [(row(0, "").id,), (row(1, "").id,)]
    assert (found.dropped, found.findings) == ((), {"trimmed": 1})
    assert len(capped(drafts(30, 30), 1).reflections) == 1


def test_a_row_that_only_the_cut_part_tells_stays() -> None:
    """XA7: of two rows that one reflection told."""
    reflected, rows = drafts(100, 100)
    text = f"{'tide ' * 90}berth"
    ids = tuple(each.id for each in rows)
    both = replace(reflected.reflections[0], text=text, replaces=ids, supports=ids)
    (told,) = capped((Reflected(reflections=(both,)), rows), 30).reflections
    assert (told.replaces, told.supports) == (ids[:1], ids[:1])


def test_nothing_is_made_of_rows_that_would_not_become_shorter() -> None:
    """XA7: with the rows of what was cut back in sight."""
    found = capped(drafts(60, 60, size=10), 40)
    assert (found.reflections, found.dropped) == ((), ())


@given(st.lists(st.integers(0, 90), min_size=1, max_size=6), st.integers(0, 200), st.integers(1, 100))
def test_what_comes_of_a_batch_fits_and_tells_what_it_hides(lengths: list[int], target: int, size: int) -> None:
    """S2.28, XA7: or is one row; and there is less in sight than before."""
    given_drafts = drafts(*lengths, size=size)
    found = capped(given_drafts, target)
    counter, rows = WordCounter(), {row.id: row for row in given_drafts[1]}
    made = sum(counter.text(draft.text) for draft in found.reflections)
    assert len(found.reflections) <= 1 or made <= target
    assert found.dropped == ()
    for draft in found.reflections:
        assert all(not draft.text or rows[each].text.split()[0] in draft.text for each in draft.replaces)
    told = [row for draft in found.reflections for row in draft.replaces]
    whole = sum(counter.text(draft.text) for draft in given_drafts[0].reflections) <= target
    assert whole or not told or made < sum(counter.text(rows[each].text) for each in told)
