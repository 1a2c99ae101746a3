"""What a long reading remembers, written down and read back."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.transcript import Beginning, Bookmark, as_json
from omcli.text.hashes import HashSet, hash_of, packed, packed_counts, unpacked, unpacked_counts

HASHES = st.integers(0, 2**64 - 1)


@given(st.lists(HASHES))
def test_hashes_are_read_back_as_they_were(hashes: list[int]) -> None:
    assert list(unpacked(packed(hashes).text)) == hashes


NEAR = HASHES | st.integers(0, 3) | st.integers(1, 60).map(lambda near: near << 32)


@given(st.lists(NEAR), st.lists(NEAR), st.lists(HASHES))
def test_a_set_of_hashes_holds_what_was_put_in_and_nothing_else(
    first: list[int], added: list[int], others: list[int]
) -> None:
    hashes = HashSet(first)
    for each in added:
        hashes.add(each)
    taken = {*first, *added}
    assert list(hashes) == sorted(taken)
    assert [each in hashes for each in (*taken, *others)] == [each in taken for each in (*taken, *others)]
    assert sorted(unpacked(packed(hashes).text)) == sorted(hashes)


def test_a_set_of_hashes_grows_with_what_is_put_in() -> None:
    many = [hash_of(str(number)) for number in range(5000)]
    hashes = HashSet(many[:1000])
    for each in many[1000:]:
        hashes.add(each)
    assert sorted(hashes) == sorted(many)
    assert all(each in hashes for each in many)
    assert hash_of("another") not in hashes


@given(st.dictionaries(HASHES, st.integers(-3, 1000)))
def test_counts_are_read_back_as_they_were(counts: dict[int, int]) -> None:
    bookmark = Bookmark.at(0, b"", found={}, carried={"counts": packed_counts(counts)})
    carried = bookmark.earlier(goes_on=True).carried
    assert carried is not None
    assert unpacked_counts(carried["counts"]) == Counter(counts)


def test_a_hash_is_the_same_in_every_run_and_on_every_machine() -> None:
    assert hash_of("record", "5f0c") == 10639191081546241789
    assert hash_of("a", "b") != hash_of("ab")
    hash_of("half a pair \ud800")


def test_what_was_said_is_told_from_hashes() -> None:
    notes = {"seen": packed([1, 2]), "title": "Tides"}
    assert as_json(notes, hashes=False) == '{"seen":null,"title":"Tides"}'
    assert '"AAAAAAAAAAEAAAAAAAAAAg=="' in as_json(notes)


@given(st.lists(st.binary()), st.binary(min_size=1))
def test_an_extent_is_told_by_its_bytes_however_they_came(pieces: list[bytes], more: bytes) -> None:
    extent, at_once = Beginning(), Beginning()
    for piece in pieces:
        extent.add(piece)
    at_once.add(b"".join(pieces))
    assert (extent.length, extent.digest) == (at_once.length, at_once.digest)
    twin = extent.copy()
    twin.add(more)
    assert extent.digest == at_once.digest != twin.digest
