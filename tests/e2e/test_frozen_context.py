"""`om context` with `context.freeze`: the same bytes until rows are folded or the tail is cut, and then again."""

from __future__ import annotations

import json
from itertools import pairwise

from omcli.tokenizers import counter
from tests.command_line import Ended
from tests.conftest import Om
from tests.e2e.contents import stored
from tests.e2e.transcripts import Talk, with_remarks

OTHER = "5d0c6e0a-0000-4000-8000-00000000000b"
FROZEN = {"OM_CONTEXT_FREEZE": "true"}
CUT = {**FROZEN, "OM_CONTEXT_EVICT": "300", "OM_CONTEXT_TAIL": "150"}
"""The tail is cut at 300 tokens."""
ROWS = ("--tier", "cross", "--tier", "session")
COLOURS = ("amber", "beige", "coral", "denim", "ebony", "frost", "green", "hazel", "ivory", "khaki", "lilac", "mauve")


def tokens(talk: Talk) -> int:
    """About as many as `om` counts in what was said."""
    return sum(counter().text(json.loads(line)["message"]["content"]) for line in talk.lines)


def decided(talk: Talk, colour: str) -> Talk:
    """One more decision, in some forty tokens."""
    return talk.user(
        f"We decided to paint the {colour} harbour chart with {colour} ink, since the printer in the harbour office"
        f" has that one in stock and the {colour} buoys are to be found on it at first sight."
    )


class Session:
    """A session that goes on: every turn is observed as it ends."""

    def __init__(self, om: Om, *, env: dict[str, str], name: str = Talk().session) -> None:
        self.om, self.env, self.talk = om, env, Talk(session=name, cwd=str(om.folder))
        self.hour = 0

    def run(self, *arguments: str, stdin: str = "") -> Ended:
        """A command, an hour later."""
        self.hour += 1
        day, hour = divmod(self.hour, 24)
        return self.om(*arguments, "--now", f"2026-02-{11 + day}T{hour:02}:00Z", stdin=stdin, env=self.env)

    def decide(self, colour: str) -> None:
        decided(self.talk, colour)
        assert colour in self.run("observe", stdin=self.talk.text()).stdout

    def cut(self) -> str:
        """The pack right after the tail was cut: two more turns find room in it."""
        before = after = self.context(*ROWS)
        for colour in COLOURS:
            self.decide(colour)
            if (after := self.context(*ROWS)) != before:
                break
        return after

    def context(self, *arguments: str) -> str:
        return self.run("context", "--session", self.talk.session, *arguments).stdout


def test_a_frozen_pack_stays_as_it_is_until_rows_are_folded_and_undoing_that_brings_it_back(om: Om) -> None:
    """T62, S2.34: an observation that comes changes nothing; a reflection does, and so does taking it back."""
    session = Session(om, env=CUT)
    with_remarks(session.talk, 200)
    before = session.cut()
    assert COLOURS[0] in before, "what was cut off the tail is told by rows"

    session.decide("navy")
    assert session.context(*ROWS) == before
    assert "navy" in session.context(*ROWS, "--refresh")

    session.run("reflect", "--session", session.talk.session)
    folded = session.context(*ROWS)
    assert folded != before
    assert session.context(*ROWS) == folded
    session.decide("ochre")
    assert session.context(*ROWS) == folded

    session.run("undo")
    assert session.context(*ROWS) == before, "to the byte"


def test_a_frozen_pack_changes_when_the_tail_is_cut_and_is_stable_again_until_the_next_cut(om: Om) -> None:
    """T62, S2.34, C4, C13: the freeze point is where `tail` tokens are left once there were `evict`."""
    session = Session(om, env=CUT)
    session.run("note", "The tide tables are printed on Fridays.")
    packs: list[str] = []
    for colour in COLOURS:
        session.decide(colour)
        packs.append(session.context(*ROWS))
        assert session.context(*ROWS) == packs[-1]
        shown = [painted for painted in COLOURS if f"{painted} harbour" in packs[-1]]
        assert tokens(session.talk) - 300 <= 45 * len(shown), "what rows do not tell is a tail of 300 tokens at most"
        assert shown == list(COLOURS[: len(shown)]), "and what they tell is all before it"
    changes = sum(one != other for one, other in pairwise(packs))
    assert "printed on Fridays" in packs[0]
    assert COLOURS[0] not in packs[0]
    assert 1 <= changes <= len(COLOURS) // 3, "a cut makes room for several turns"


def test_a_frozen_pack_tells_everything_by_a_row_or_by_a_message_within_its_budget(om: Om) -> None:
    """S2.34, F50: in whatever format."""
    session = Session(om, env=CUT)
    for colour in COLOURS[:9]:
        session.decide(colour)
    for to in ("text", "markdown", "xml", "json", "messages"):
        for budget in (0, 60, 600, 1_500):
            pack = session.context("--to", to, "--budget", str(budget))
            assert session.context("--to", to, "--budget", str(budget)) == pack
            assert counter().text(json.loads(pack)["text"] if to == "json" else pack) <= budget
        assert [colour for colour in COLOURS[:9] if colour not in session.context("--to", to)] == [], to


def test_the_tail_of_a_frozen_pack_is_only_added_to(om: Om) -> None:
    """S2.34, S0.5: between two cuts a pack begins as the one before it, up to where that ended."""
    session = Session(om, env=CUT)
    cuts, last = 0, ""
    for colour in COLOURS:
        session.decide(colour)
        pack = session.context().removesuffix("</om-memory>\n").rstrip("\n")
        cuts += bool(last) and not pack.startswith(last)
        last = pack
    assert 1 <= cuts <= len(COLOURS) // 3


def test_a_row_that_a_later_one_replaces_stays_in_a_frozen_pack(om: Om) -> None:
    """S2.34, T62: an observation that settles another is still an observation that comes."""
    session = Session(om, env=CUT)
    session.talk.call("Bash", {"command": "pytest tests"}).result("1 failed: test_tides", is_error=True)
    before = session.cut()
    assert "failed: 1 failed" in before
    session.talk.call("Bash", {"command": "pytest tests"}).result("12 passed")
    session.run("observe", stdin=session.talk.text())
    assert om("status", "--json").document["hidden"] == 1, "the failure is resolved"
    assert session.context(*ROWS) == before


def test_a_forgotten_row_is_never_shown_whatever_the_horizon(om: Om) -> None:
    """S2.34, T54: nor is one that was pruned; undoing brings them back into the pack as it was."""
    session = Session(om, env=CUT)
    for colour in COLOURS:
        session.decide(colour)
    before = session.context(*ROWS)
    session.run("forget", "--match", COLOURS[1])
    after = session.context(*ROWS)
    assert COLOURS[0] in after
    assert COLOURS[1] not in after
    assert COLOURS[1] not in session.context()
    session.run("undo")
    assert session.context(*ROWS) == before


def test_what_is_noted_by_hand_is_shown_at_once_for_no_message_tells_it(om: Om) -> None:
    session = Session(om, env=CUT)
    for colour in COLOURS[:4]:
        session.decide(colour)
    assert "pigment" not in session.context(*ROWS)
    session.run("note", "The pigment is kept in the cellar.", "--session", session.talk.session)
    noted = session.context(*ROWS)
    assert "pigment" in noted
    session.decide("navy")
    assert session.context(*ROWS) == noted
    session.run("note", "Ink is ordered on Mondays.")
    assert "ordered on Mondays" in session.context(*ROWS)


def test_what_other_sessions_observe_is_told_when_the_pack_changes(om: Om) -> None:
    """S2.34, S2.35: the cross-session tier is of the freeze point as well."""
    session = Session(om, env=CUT)
    session.decide(COLOURS[0])
    before = session.context(*ROWS)
    other = Session(om, env=CUT, name=OTHER)
    other.talk.user("Always run make lint before you push.")
    other.run("observe", stdin=other.talk.text())
    assert session.context(*ROWS) == before
    assert "make lint" in session.context(*ROWS, "--refresh")
    for colour in COLOURS[1:]:
        session.decide(colour)
    assert "make lint" in session.context(*ROWS)


def test_what_nobody_has_observed_is_not_cut_off(om: Om) -> None:
    """T56, S2.12: drain first, then evict."""
    session = Session(om, env=CUT)
    for colour in COLOURS:
        decided(session.talk, colour)
    session.run("observe", "--later", stdin=session.talk.text())
    pack = session.run("context", "--session", session.talk.session, "--json", "--tier", "session")
    assert (pack.document["pending"], pack.document["frozen_at"]) == (len(COLOURS), None)
    session.run("observe", stdin=session.talk.text())
    assert COLOURS[0] in session.context(*ROWS)


def test_a_message_that_waits_again_behind_the_horizon_is_told_once_it_is_observed(om: Om) -> None:
    """S4.16: it was forgotten while it waited, others were observed and cut off, and the forgetting was undone."""
    session = Session(om, env=CUT)
    decided(session.talk, "amber")
    session.run("observe", "--later", stdin=session.talk.text())
    session.run("forget", "--match", "amber")
    for colour in COLOURS[1:10]:
        session.decide(colour)
    session.run("undo")
    session.run("observe", stdin=session.talk.text())
    pack = session.context()
    assert pack.count("amber harbour") == 1
    assert [colour for colour in COLOURS[:10] if colour not in pack] == []


def test_json_says_of_which_moment_a_frozen_pack_is(om: Om) -> None:
    session = Session(om, env=CUT)
    for colour in COLOURS[:9]:
        session.decide(colour)
    frozen = json.loads(session.context("--json", *ROWS))
    written = {row.get("observed_at") for row in session.run("log", "--json").document["observations"]}
    assert frozen["frozen_at"] in written
    assert "frozen_at" not in json.loads(session.context("--json", *ROWS, "--refresh"))
    assert "frozen_at" not in om("context", "--json", "--session", session.talk.session).document
    unknown = om("context", "--json", "--session", "a-session-to-come", env=CUT).document
    assert "frozen_at" not in unknown, "of no session there is no freeze point"


def test_without_freezing_nothing_is_frozen_and_the_working_memory_never_is(om: Om) -> None:
    session = Session(om, env=FROZEN)
    session.decide(COLOURS[0])
    assert COLOURS[0] not in session.context(*ROWS), "it is in the tail, which the host has"
    assert COLOURS[0] in session.context()
    assert COLOURS[0] in om("context", *ROWS, "--session", session.talk.session).stdout
    before = session.context("--working-memory")
    session.decide(COLOURS[1])
    assert session.context("--working-memory") != before
    assert session.context("--working-memory", "--refresh") == session.context("--working-memory")


def test_asking_for_a_frozen_pack_writes_nothing(om: Om) -> None:
    """S0.19: the freeze point is stored nowhere."""
    session = Session(om, env=CUT)
    for colour in COLOURS[:9]:
        session.decide(colour)
    if om.url is None:
        om.db.chmod(0o400)
    before = stored(om.place)
    assert session.context()
    assert stored(om.place) == before


def test_the_preset_duet_freezes_the_pack(om: Om) -> None:
    """S2.34, S2.3."""
    session = Session(om, env={"OM_PRESET": "duet"})
    session.decide(COLOURS[0])
    before = session.context(*ROWS)
    session.decide(COLOURS[1])
    assert session.context(*ROWS) == before
    assert COLOURS[1] in session.context(*ROWS, "--refresh")
    said = om("config", "--json", env=session.env).document["settings"]
    assert (said["context.tail"], said["context.evict"], said["context.freeze"]) == (60_000, 120_000, True)
