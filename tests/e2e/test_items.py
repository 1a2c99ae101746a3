"""`om items`, `om note --item`, and what `om show` says of rows that were made of rows."""

from __future__ import annotations

import re

from omcli.base.record import replace
from omcli.memory.observation import Kind, Type
from tests.conftest import Om
from tests.material import row, row_id

NOW = ("--now", "2026-03-03T09:00:00Z")


def kept(om: Om) -> None:
    """Two projects, four items made of two rows, one of them out of sight."""
    om.db.parent.mkdir(exist_ok=True)
    with om.open() as store:
        store.rows.add(row(1, text="CI runs on ARM"))
        store.rows.add(row(2, text="Ada wants short commits"))
        made = row(3, kind=Kind.ITEM, type=Type.BEHAVIOR, text="Keep commits short", supports=(row_id(1), row_id(2)))
        store.rows.add(replace(made, tags=("git", "preference"), session=None))
        store.rows.add(
            row(4, kind=Kind.ITEM, type=Type.KNOWLEDGE, text="CI is ARM", tags=("CI",), supports=(row_id(1),))
        )
        store.rows.add(row(5, kind=Kind.ITEM, type=Type.SKILL, text="Deploy with make", project="/src/other"))
        store.rows.add(row(6, kind=Kind.ITEM, type=Type.SKILL, text="Deploy by hand", superseded_by=row_id(5)))


def test_items_are_listed_with_tags_and_what_they_were_made_of(om: Om) -> None:
    """S0.32, T40."""
    kept(om)
    lines = om("items", *NOW).stdout.splitlines()
    assert "00000003 behavior: Keep commits short #git #preference < 00000001 00000002" in lines
    assert "00000004 knowledge: CI is ARM #CI < 00000001" in lines
    assert len(lines) == 3
    document = om("items", "--json", *NOW).document["items"]
    assert [item["id"] for item in om("items", "--jsonl", *NOW).lines] == [item["id"] for item in document]
    assert next(item for item in document if item["type"] == "behavior")["supports"] == [row_id(1), row_id(2)]


def test_items_are_narrowed_by_tag_type_and_project(om: Om) -> None:
    kept(om)

    def texts(*arguments: str) -> set[str]:
        return {item["text"] for item in om("items", "--jsonl", *arguments).lines}

    assert texts("--tag", "ci") == {"CI is ARM"}
    assert texts("--tag", "git", "--tag", "preference") == {"Keep commits short"}
    assert texts("--tag", "git", "--tag", "ci") == set()
    assert texts("--type", "skill", "--type", "knowledge") == {"CI is ARM", "Deploy with make"}
    assert texts("--project", "/src/other") == {"Deploy with make"}
    assert texts("--type", "skill", "--all") == {"Deploy with make", "Deploy by hand"}
    assert "(superseded)" in om("items", "--all").stdout
    om("items", "--json", "--jsonl", code=2)
    om("items", "--type", "decision", code=2)


def test_what_was_pinned_or_matters_most_comes_first(om: Om) -> None:
    om("note", "--item", "small matter", "--priority", "low", *NOW)
    om("note", "--item", "great matter", "--priority", "high", *NOW)
    om("note", "--item", "nailed down", "--priority", "low", "--tag", "pinned", *NOW)
    assert re.findall(r": (\w+)", om("items", *NOW).stdout) == ["nailed", "great", "small"]


def test_a_person_writes_an_item_and_later_sessions_are_told(om: Om) -> None:
    run = om("note", "--item", "releases are cut on Thursdays", "--tag", "release", "--json", *NOW)
    written = run.document["observation"]
    assert (written["kind"], written["type"], written["source"]) == ("item", "knowledge", "user")
    assert om("items", "--tag", "release").stdout.endswith(" knowledge: releases are cut on Thursdays #release\n")
    assert "releases are cut on Thursdays" in om("context").stdout
    assert om("note", "--item", "x", "--type", "skill", "--json").document["observation"]["type"] == "skill"
    run = om("note", "--item", "x", "--type", "decision", code=2)
    assert "knowledge, behavior, event, skill" in run.stderr


def test_a_project_that_is_not_known_is_said_to_be(om: Om) -> None:
    run = om("items", "--project", "/no/where")
    assert (run.stdout, run.stderr.startswith("om: unknown project /no/where; ")) == ("", True)


def test_nothing_lasting_is_an_empty_list(om: Om) -> None:
    assert om("items").stdout == ""
    assert om("items", "--json").document["items"] == []


def test_a_row_says_how_well_it_is_covered_and_what_it_was_made_of(om: Om) -> None:
    """T50: none, partial, strong."""
    kept(om)
    covered = [om("show", row_id(number), "--json").document["observation"]["coverage"] for number in (1, 2, 3)]
    assert covered == ["strong", "partial", "none"]
    assert "\ncoverage      strong\n" in om("show", row_id(1)).stdout
    text = om("show", "00000003").stdout
    assert "\nsupports      00000001, 00000002\n" in text
    assert "supports" not in om("show", row_id(1), "--json").document["observation"]
