"""`om forget`, `om undo`, `om history`: out of memory, back into it, and what was done."""

from __future__ import annotations

import json

import pytest

from omcli.memory.batch import BatchOutcome
from omcli.memory.message import digest
from omcli.memory.observation import handle
from tests.conftest import Om
from tests.e2e.contents import connected, stored
from tests.e2e.reflecting import in_sight, labels, reflecting, reply, texts, told
from tests.e2e.terminals import on_terminal
from tests.e2e.test_prune import files
from tests.e2e.transcripts import Talk
from tests.material import NOW as AT
from tests.material import row

CODE = "MARIGOLD-4711"
RULE = "Never deploy the harbour gateway on Fridays because Ines is on call in Husum."
BARE = RULE.rstrip(".")
FORMS = (
    RULE, BARE, BARE.upper(), f"{BARE}…", f"{BARE}:", f"{BARE} ;", f"{BARE}!!", f"- {RULE}", f"* {BARE}", f"12. {RULE}",
    f"[ ] {RULE}", f"- [x] {RULE}", f"– {RULE}", f"🔴 {RULE}", f"> {RULE}", f"({RULE})", f"‘{RULE}’", f'"{RULE}"',
    f"**{RULE}**", f"~~{RULE}~~", f"`{RULE}`", f"<b>{RULE}</b>", f"[{RULE}](https://example.org)", f"\ufeff{RULE}",
    RULE.replace("harbour", "har\u200bbour"), RULE.replace("harbour", "har\u00adbour"), f"{RULE}\u200e",
    RULE.replace("Never", "**Nev**er"), RULE.replace(" ", "\u00a0"), f"\x1b[1m{RULE}\x1b[0m", f"User: {RULE}",
    f"**User:** {BARE}", f"- user: _{RULE}_", f"CRITICAL User: {RULE}", RULE.replace("Never", "\uff2eever"),
)  # fmt: skip
BLOCKS = (f"# {RULE}", f"```text\n{RULE}\n```", RULE.replace(" on ", "\non "), f"## Rules\n\n- {RULE}")
NOW = ("--now", "2026-06-01T12:00:00Z")


def harbour(om: Om) -> Talk:
    """A session in which a code is told, and something else."""
    talk = (
        Talk()
        .user(f"We decided that the harbour code is {CODE}.")
        .assistant("I will remember that.")
        .user("We decided to use port 8080.")
        .assistant("Fine.")
    )
    om("observe", om.write("t.jsonl", talk.text()))
    return talk


def of(om: Om, word: str) -> str:
    """The handle of the row in sight that has this word."""
    return next(handle(each["id"]) for each in in_sight(om) if word in each["text"])


def reflected(om: Om, *facts: str) -> tuple[str, ...]:
    """Rows of these facts, each with a message of its own, and how a model is asked that makes one row of them all."""
    talk = Talk(session="s")
    for fact in facts:
        talk.user(f"Hello. {fact}")
    om("observe", "--later", om.write("s.jsonl", talk.text()))
    with om.open() as store:
        batch = store.batches.unobserved("s", max_tokens=10_000)
        assert batch is not None
        rows = [
            row(number, text=f"{fact}, {'and it was said at length ' * 5}", sources=(kept.seq,))
            for number, (fact, kept) in enumerate(zip(facts, batch.messages, strict=True))
        ]
        store.batches.record(batch, rows, outcome=BatchOutcome.OBSERVED, now=AT)
    answer = reply(told("; ".join(facts), *labels(len(facts))))
    return ("reflect", "--session", "s", "--model", reflecting(om, answer, answer).model)


class TestForgetting:
    """What is forgotten is shown by nothing, and does not come back."""

    def test_rows_and_messages_that_contain_a_text_go_in_any_case_and_come_back(self, om: Om) -> None:
        harbour(om)
        before = om("log", "--all", "--jsonl").stdout, om("context").stdout
        planned = om("forget", "--match", CODE.lower(), "--dry-run", "--json").document
        assert om("log", "--all", "--jsonl").stdout == before[0]
        done = om("forget", "--match", CODE.lower(), "--json", *NOW).document
        assert (len(done["rows"]), len(done["messages"]), done["operation"]) == (1, 1, 1)
        assert [done[name] for name in ("rows", "messages")] == [planned[name] for name in ("rows", "messages")]
        for shown in (om("log", "--all"), om("context"), om("export", "--to", "pi"), om("status", "--json")):
            assert CODE not in shown.stdout
        om("show", done["rows"][0]["id"], code=65)
        om("show", done["messages"][0]["id"], code=65)
        om("undo")
        assert (om("log", "--all", "--jsonl").stdout, om("context").stdout) == before

    def test_it_is_not_taken_in_again_by_observing_importing_or_handing_in(self, om: Om) -> None:
        """D6: however it is said; what somebody writes by hand is taken all the same."""
        harbour(om)
        document = om("export", "--to", "duet-groups").stdout
        om("forget", of(om, CODE))
        assert CODE not in om("log", "--all").stdout
        again = Talk(session="another").user(f"We decided that the harbour code is  {CODE.lower()}.").assistant("Fine.")
        report = om("observe", om.write("again.jsonl", again.text()), "--json").document["files"][0]
        assert (report["new_messages"], report["observations"]) == (1, 0), "a report counts what was written"
        assert report["skipped"] == {"forgotten": 1}, "a forgotten row keeps out the message as well"
        report = om("import", "--format", "duet-groups", "--session", "copy", "--json", "-", stdin=document).document
        assert report["files"][0]["skipped"]["forgotten"] == 1
        assert CODE.lower() not in om("log", "--all").stdout.lower()
        om("note", f"User: We decided that the harbour code is {CODE}.")
        assert CODE in om("log").stdout

    def test_an_event_that_is_forgotten_is_not_nothing(self, om: Om) -> None:
        talk = (
            Talk().user("Please print the tides.").user("This session is being continued from a previous conversation.")
        )
        om("observe", "--later", om.write("t.jsonl", talk.text()))
        event = json.loads(talk.lines[-1])["uuid"]
        assert "would forget: 1 uncounted message\n" in om("forget", event, "--dry-run").stderr
        assert "1 uncounted message forgotten; `om undo 1` reverses that\n" in om("forget", event).stderr
        om("undo")
        assert "  1 uncounted message  undone by 2\n" in om("history").stdout
        om("forget", event, "--hard", "--yes")
        assert om("history").stdout.count("  1 uncounted message") == 2

    def test_a_session_of_forgotten_messages_is_told_and_is_not_the_last(self, om: Om) -> None:
        """XD6: counted as an import counts them; undoing brings the session back."""
        talk = harbour(om)
        om("forget", "--match", CODE)
        again = Talk(session="later", begin=talk.begin.replace(year=talk.begin.year + 1))
        again.user(f"We decided that the harbour code is {CODE}.")
        told = om("observe", om.write("later.jsonl", again.text())).stderr
        assert "1 message (0 new), 0 observations, 1 message forgotten" in told
        again = Talk(session="later still", begin=again.begin).user(f"We decided that the harbour code is {CODE}.")
        (report,) = om("observe", "--json", om.write("still.jsonl", again.text())).document["files"]
        assert report["skipped"] == {"forgotten": 1}
        assert "8080" in om("log", "--session", "last").stdout
        pack = om("context", "--json")
        assert (pack.document["session"], "later" in pack.stderr) == (talk.session, False)
        om("forget", "--session", talk.session, "--match", "e")
        assert "no session has messages" in om("log", "--session", "last", code=66).stderr
        om("undo")
        om("undo")
        assert CODE in om("context", "--session", "last").stdout

    def test_an_agent_that_hands_it_in_is_not_believed(self, om: Om) -> None:
        harbour(om)
        text = next(each["text"] for each in in_sight(om) if CODE in each["text"])
        om("forget", of(om, CODE))
        om("observe", "--later", om.write("u.jsonl", Talk(session="u").user(f"Hello, {CODE} it is.").text()))
        waiting = om("pending", "--session", "u", "--json").document
        row = {
            "text": text, "priority": "medium", "kind": "decision", "status": None, "at": None, "refers_to": None,
            "refers_to_kind": None, "under": None, "sources": [waiting["messages"][0]["label"]], "replaces": [],
        }  # fmt: skip
        given = om.write("given.json", json.dumps({"token": waiting["token"], "observations": [row]}))
        om("apply", given)
        assert CODE not in om("log", "--all").stdout

    def test_rows_made_of_it_and_messages_it_came_from_are_named_and_go_along_if_asked_for(self, om: Om) -> None:
        om(*reflected(om, f"The code is {CODE}", "The port is 8080"))
        source = om("log", "--all", "--jsonl").lines[0]
        [reflection] = in_sight(om, "--session", "s", "--kind", "reflection")
        run = om("forget", source["id"], "--dry-run")
        assert f"(add `--derived`): {handle(reflection['id'])}" in run.stderr
        assert f"may still contain it: {source['message_ids'][0]}" in run.stderr
        om("forget", source["id"], "--derived")
        assert CODE not in om("log", "--all").stdout
        om("undo")
        assert in_sight(om, "--session", "s", "--kind", "reflection") == [reflection]

    def test_what_a_row_took_the_place_of_goes_with_it(self, om: Om) -> None:
        """The working-memory block is made of hidden rows as well: they do not stand up again."""
        talk = Talk().user("Run the tests.").call("Bash", {"command": "make test"})
        om("observe", om.write("t.jsonl", talk.result("Exit code 2\nno such target", is_error=True).text()))
        talk.user("Once more, please.").call("Bash", {"command": "make test"}).result("12 passed")
        om("observe", om.write("t.jsonl", talk.text()))
        hidden = [each for each in om("log", "--all", "--jsonl").lines if each.get("superseded_by")]
        assert hidden
        last = hidden[0]["superseded_by"]
        block = ("context", "--working-memory", "--session", talk.session)
        before = om(*block).stdout
        done = om("forget", last, "--json").document
        assert hidden[0]["id"] in [each["id"] for each in done["along"]]
        om("undo")
        assert om(*block).stdout == before

    @pytest.mark.parametrize("by_id", [False, True])
    def test_what_was_forgotten_before_can_still_be_deleted_for_good(self, om: Om, *, by_id: bool) -> None:
        """D6, C20: it is found although nothing shows it, and then it is in none of the files."""
        harbour(om)
        row = next(each for each in in_sight(om) if CODE in each["text"])
        names = [row["id"], *row["message_ids"]] if by_id else ["--match", CODE]
        om("forget", *names)
        again = om("forget", *names, "--json").document
        assert (len(again["rows"]), len(again["messages"]), "operation" in again) == (1, 1, False)
        assert "forgotten already" in om("forget", *names).stderr
        assert len(om("history", "--jsonl").lines) == 1, "XE7: forgetting twice is one operation"
        om("undo")
        assert CODE in om("log", "--all").stdout
        assert om("undo", code=65).stdout == ""
        om("forget", *names)
        run = om("forget", *names, "--hard", "--yes")
        assert "1 row, 1 message deleted" in run.stderr
        assert CODE.encode() not in stored(om.place)
        assert om("history").stdout.count("1 row hidden, 1 message") == 3, "as it was then"
        om("forget", *names, code=65 if by_id else 1)

    def test_what_was_pruned_can_still_be_forgotten(self, om: Om) -> None:
        """XE7: it is hidden already, but not kept out."""
        harbour(om)
        om("prune", "--raw", "--older-than", "2026-05-01", *NOW)
        document = om("forget", "--match", CODE, "--json").document
        assert (document["operation"], len(document["messages"])) == (2, 1)

    @pytest.mark.parametrize("hard", [[], ["--hard", "--yes"]])
    @pytest.mark.parametrize("times", [True, False])
    def test_words_stay_forgotten_in_another_session_and_without_times(
        self, om: Om, hard: list[str], *, times: bool
    ) -> None:
        """XD6, D6, S0.40, S4.13: neither the message nor a row comes back; what was said beside it does."""
        said = [
            {"role": "user", "content": f"We decided that the harbour code is {CODE}."},
            {"role": "assistant", "content": "ok"},
            {"role": "user", "content": "We decided to use port 8080."},
        ]
        first = [{**each, "timestamp": f"2026-03-12T08:4{at}:00Z"} for at, each in enumerate(said)]
        om("observe", "-q", "--session", "one", stdin=json.dumps(first))
        om("forget", "--match", CODE, *hard)
        om("forget", "--match", "ok")
        copied = json.dumps(first if times else said)
        for session in ("one", "two"):
            om("observe", "-q", "--session", session, stdin=copied)
            om("observe", "-q", "--session", session, stdin=copied)
            pack = om("context", "--session", session).stdout
            assert CODE not in pack
            assert "port 8080" in pack
        om("observe", "-q", stdin=copied.replace("the harbour code", "the  Harbour code"))
        assert CODE not in om("log", "--all", "--jsonl").stdout + om("sessions", "--json").stdout
        assert "\nassistant: ok\n" in om("context", "--session", "two").stdout, "everybody says that"
        counts = {row["id"]: row["messages"] for row in om("sessions", "--jsonl").lines}
        assert counts["two"] == 2
        if hard:
            assert CODE.encode() not in stored(om.place)
        else:
            om("undo", "1")
            assert CODE in om("context", "--session", "two").stdout, "as if nothing had been forgotten"

    def test_the_words_of_a_forgotten_message_are_kept_out_in_every_form(self, om: Om) -> None:
        """XD6: as a row of an import, with or without a speaker; with emphasis, in quotation marks, without its end."""
        said = "Never deploy the harbour gateway on Fridays because Ines is on call in Husum."
        om("observe", "-q", "--session", "one", stdin=json.dumps([{"role": "user", "content": said}]))
        om("forget", "--match", "harbour gateway")
        forms = (said, f"**{said}**", said.rstrip("."), f'"{said}"', said.replace("Ines", "_Ines_"))
        for form in forms:
            for text in (form, f"User: {form}"):
                written = f"[2026-05-01 10:00] CRITICAL {text}\n"
                document = om("import", "--json", "--format", "zora", stdin=written).document
                assert "forgotten" in json.dumps(document)
            om("observe", "-q", "--session", "two", stdin=json.dumps([{"role": "user", "content": form}]))
        assert om("log", "--all", "--jsonl").lines == []
        assert "gateway" not in om("context", "--session", "two").stdout + om("sessions", "--json").stdout
        longer = f"Please note this: {said}"
        om("observe", "-q", "--session", "two", stdin=json.dumps([{"role": "user", "content": longer}]))
        assert longer in om("context", "--session", "two").stdout, "another message"
        om("undo", "1")
        assert said in [row["text"].removeprefix("User: ") for row in om("log", "--jsonl").lines]

    @pytest.mark.parametrize("way", ["message", "sentence", "row", "hard"])
    def test_forgotten_words_stay_out_by_every_way_in(self, om: Om, way: str) -> None:
        """XD6, D6: as messages of users and agents, rows, titles and imports, whatever is written around the words."""
        first = f"What is the rule? {RULE}" if way == "sentence" else RULE
        om("observe", "-q", "--session", "one", stdin=json.dumps([{"role": "user", "content": first}]))
        before = om("log", "--jsonl").stdout
        named = [of(om, "gateway")] if way == "row" else ["--match", "harbour gateway"]
        om("forget", *named, *(["--hard", "--yes"] if way == "hard" else []))
        for number, form in enumerate((*FORMS, *BLOCKS)):
            said = [{"role": role, "content": form} for role in ("user", "assistant")]
            om("observe", "-q", "--session", f"s{number}", stdin=json.dumps(said))
        titled = Talk(session="titled").user("Good morning.")
        for form in FORMS[:8]:
            titled.raw(json.dumps({"type": "ai-title", "aiTitle": form, "sessionId": "titled"}))
        om("observe", "-q", om.write("titled.jsonl", titled.text()))
        lines = "".join(
            f"[2026-05-01 10:00] CRITICAL {by}{form}\n" for form in FORMS for by in ("", "User: ", "Nora: ")
        )
        report = om("import", "--json", "--format", "zora", stdin=lines).document["files"][0]
        assert (report["observations"], report["skipped"]["forgotten"]) == (0, lines.count("\n"))
        later = [row for row in om("sessions", "--jsonl").lines if row["id"] != "one"]
        assert "gateway" not in om("log", "--all").stdout.lower() + json.dumps(later).lower()
        assert {row["messages"] for row in later if row["id"] != "titled"} <= {0}
        longer = f"Please note this: {RULE}"
        om("observe", "-q", "--session", "long", stdin=json.dumps([{"role": "user", "content": longer}]))
        assert longer in om("context", "--session", "long").stdout, "another message"
        if way != "hard":
            om("forget", "--session", "long", "--match", "Please note")
            om("undo")
            om("undo", "1")
            assert om("log", "--jsonl", "--session", "one").stdout == before

    def test_a_sentence_is_forgotten_also_later_and_only_with_its_words(self, om: Om) -> None:
        """XD6: another sentence of a message that is forgotten already; the remaining sentences may be said again."""
        said = f"The ferry to Amrum leaves at noon from pier seven. {RULE} Lighthouse keys hang behind the oak door."
        om("observe", "-q", "--session", "one", stdin=json.dumps([{"role": "user", "content": said}]))
        om("forget", "--match", "ferry")
        om("observe", "-q", "--session", "two", stdin=json.dumps([{"role": "user", "content": RULE}]))
        assert RULE in om("context", "--session", "two").stdout
        om("forget", "--match", "harbour gateway")
        assert "forgotten already" in om("forget", "--match", "harbour gateway").stderr
        again = [{"role": "user", "content": part} for part in said.replace(". ", ".\n").split("\n")]
        om("observe", "-q", "--session", "three", stdin=json.dumps(again))
        shown = om("context", "--session", "three").stdout
        assert ("ferry" in shown, "gateway" in shown, "Lighthouse" in shown) == (False, False, True)

    def test_a_row_of_somebody_with_a_name_keeps_out_what_they_say(self, om: Om) -> None:
        """XD6: forgotten by its handle; the same words under another label are something else."""
        said = [{"role": "user", "name": name, "content": f"{text}"} for name, text in (("Nora", RULE), ("Ben", "Hi."))]
        om("observe", "-q", "--session", "one", stdin=json.dumps(said))
        om("forget", of(om, "gateway"))
        om("observe", "-q", "--session", "two", stdin=json.dumps([*said, {**said[1], "content": "Good morning."}]))
        assert "gateway" not in om("log", "--all").stdout + om("context", "--session", "two").stdout
        om("import", "-q", "--format", "zora", stdin=f"[2026-05-01 10:00] CRITICAL Rejected: {RULE}\n")
        assert f"Rejected: {RULE}" in om("log").stdout

    def test_a_next_step_of_forgotten_words_is_left_out(self, om: Om) -> None:
        """XD6: the row of the task is written without it."""
        om("observe", "-q", "--session", "one", stdin=json.dumps([{"role": "user", "content": RULE}]))
        om("forget", "--match", "harbour gateway")
        asked = [{"role": "user", "content": "Please look at the tide tables."}]
        om("observe", "-q", "--later", "--session", "two", stdin=json.dumps(asked))
        waiting = om("pending", "--session", "two", "--json").document
        task = {"current_task": "Look at the tide tables", "next_step": f"**{BARE}**", "title": f"- {BARE}"}
        om("apply", om.write("given.json", json.dumps({"token": waiting["token"], "observations": [], **task})))
        shown = om("context", "--session", "two").stdout + om("context", "--session", "two", "--working-memory").stdout
        assert "tide tables" in shown
        assert "gateway" not in shown + om("log", "--jsonl").stdout + om("sessions", "--json").stdout

    def test_tombstones_of_earlier_versions_still_count(self, om: Om) -> None:
        """XD6: they recognise rows, titles and messages as they did."""
        om("observe", "-q", "--session", "one", stdin=json.dumps([{"role": "user", "content": RULE}]))
        om("forget", "--match", "harbour gateway")
        former = digest(None, f"user: {RULE.lower()}"), digest("message", None, BARE.lower())
        with connected(om.place) as store:
            store.execute("DELETE FROM tombstones")
            store.executemany("INSERT INTO tombstones VALUES (?, 1)", [(bytes.fromhex(each),) for each in former])
        om("observe", "-q", "--session", "two", stdin=json.dumps([{"role": "user", "content": f"**{BARE}**"}]))
        om("import", "-q", "--format", "zora", stdin=f"[2026-05-01 10:00] CRITICAL User: {RULE}\n")
        assert om("log", "--all").stdout + om("context", "--session", "two").stdout.partition("Last messages")[2] == ""
        assert "forgotten already" in om("forget", "--match", "harbour gateway").stderr
        om("undo")
        assert RULE in om("log").stdout

    def test_a_command_that_was_forgotten_is_run_again(self, om: Om) -> None:
        """XD6: what many sessions say is kept out only where it was forgotten; long content everywhere."""
        content = (
            "The gauge of Husum reads seven inches below zero whenever the northern sluice stays closed overnight."
        )

        def work(session: str) -> Talk:
            talk = Talk(session=session).user("Hello. Please run the tests.")
            talk.call("Bash", {"command": "pytest -q"}).result("1 failed: test_tides", is_error=True)
            return talk.call("Read", {"file_path": "/home/ada/gauge.md"}).result(content)

        om("observe", "-q", stdin=work("one").text())
        om("forget", "--match", "pytest")
        om("forget", "--match", "northern sluice")
        om("observe", "-q", stdin=work("two").text())
        assert "pytest -q" in om("log", "--session", "two").stdout
        assert "pytest -q" not in om("log", "--session", "one").stdout
        pack = om("context", "--session", "two").stdout
        assert "pytest" in pack
        assert "sluice" not in pack + om("log").stdout

    def test_the_title_that_tells_it_goes_and_is_not_given_again(self, om: Om) -> None:
        talk = harbour(om)
        with om.open() as store:
            batch_session = store.sessions.find(talk.session)
            assert batch_session is not None
        grown = talk.raw(
            json.dumps({"type": "ai-title", "aiTitle": f"The code {CODE}", "sessionId": talk.session})
        ).user("Thanks, and good night.")
        om("observe", om.write("t.jsonl", grown.text()))
        titled = om("sessions", "--jsonl").lines[0].get("title")
        om("forget", "--match", CODE, "--derived")
        assert CODE not in om("sessions").stdout
        om("observe", om.write("copy.jsonl", grown.text()))
        assert CODE not in om("sessions").stdout
        om("undo")
        assert om("sessions", "--jsonl").lines[0].get("title") == titled

    def test_messages_that_wait_are_never_observed(self, om: Om) -> None:
        talk = Talk().user(f"We decided that the code is {CODE}.").assistant("Fine.").user("We decided to use tabs.")
        om("observe", "--later", om.write("t.jsonl", talk.text()))
        om("forget", "--match", CODE)
        assert om("sessions", "--jsonl").lines[0]["pending"] == 2
        om("observe", om.write("t.jsonl", talk.assistant("Fine.").text()))
        assert [each for each in texts(om) if "tabs" in each]
        assert CODE not in om("log", "--all").stdout

    def test_a_session_or_a_project_narrows_it(self, om: Om) -> None:
        om("note", "the code", "--session", "a")
        om("note", "the code", "--session", "b")
        om("forget", "--match", "CODE", "--session", "a")
        assert [each["session"] for each in in_sight(om)] == ["b"]
        om("forget", "--match", "code", "--project", "/nowhere", code=1)
        om("forget", "--match", "code", "--project", om.folder)
        assert in_sight(om) == []

    def test_a_message_is_forgotten_by_its_id_also_when_it_was_pruned(self, om: Om) -> None:
        harbour(om)
        [row] = [each for each in in_sight(om) if CODE in each["text"]]
        om("prune", "--raw", "--older-than", "1d")
        run = om("forget", row["message_ids"][0])
        assert run.stdout.startswith(row["message_ids"][0])
        assert f"derived rows may still contain it (add `--derived`): {handle(row['id'])}" in run.stderr
        om("undo", "1")
        om("show", row["message_ids"][0], code=65)

    def test_nothing_of_it_is_exit_1_and_nonsense_a_usage_error(self, om: Om) -> None:
        harbour(om)
        for more in ([], ["--json"]):
            run = om("forget", "--match", "nothing like it", *more, code=1)
            assert run.stderr == "om: nothing matches\n"
            assert om("forget", "--match", "nothing like it", "--hard", code=1).stderr == run.stderr
        for wrong in ([], ["--match", " "], ["abcd", "--match", "x"], ["abcd", "--session", "s"]):
            om("forget", *wrong, code=2)
        om("forget", "00000000", code=65)
        assert om("history").stdout == ""

    @pytest.mark.parametrize("way", ["at once", "later"])
    def test_deleted_for_good_it_is_in_none_of_the_files(self, om: Om, way: str) -> None:
        """D6: neither in the store, nor in the log beside it, nor in free pages; it does not come back all the same."""
        talk = harbour(om)
        assert CODE.encode() in files(om)
        if way == "at once":
            om("forget", "--match", CODE, "--hard", code=2)
            assert CODE in om("log").stdout
            run = om("forget", "--match", CODE, "--hard", "--yes")
        else:
            om("forget", "--match", CODE)
            assert CODE.encode() in files(om)
            run = om("prune", "--hard", "--yes")
        assert " kB freed: " in run.stderr
        assert CODE.encode() not in files(om)
        assert CODE.lower().encode() not in files(om)
        om("undo", code=65)
        om("observe", om.write("t.jsonl", talk.text()))
        om("observe", om.write("copy.jsonl", talk.text().replace("000001", "000002")))
        assert CODE.encode() not in b"".join(each.encode() for each in texts(om))


@pytest.mark.parametrize("way", ["forget", "prune"])
def test_what_is_deleted_beside_what_was_named_is_told(om: Om, way: str) -> None:
    """D6: the rows that a reflection took the place of go with it."""
    om(*reflected(om, "The port is 8080", "The port is 8081", "The host is db1"))
    [folded] = in_sight(om)
    named = ("forget", folded["id"]) if way == "forget" else ("prune", "--keep-last", "0")
    run = om(*named, "--hard", "--yes")
    assert "\n3 hidden rows deleted as well, replaced by those\n" in run.stderr
    assert om("log", "--all").stdout == ""


def test_files_of_notes_that_tell_it_are_named_and_left_as_they_are(om: Om) -> None:
    """D6: they are no part of the store; a folder is known by what was taken in from it, or by the settings."""
    notes = om.folder / "notes"
    (notes / "archive").mkdir(parents=True)
    told_in = [notes / "2026-01-05.md", notes / "MEMORY.md", notes / "archive" / "2026-01-04.md"]
    for path in told_in:
        path.write_text(f"- Decided that the harbour code is {CODE}.\n", "utf-8")
    (notes / "2026-01-06.md").write_text("- Decided to use tabs.\n", "utf-8")
    om("observe", "--format", "text", "--session", "notes", notes / "2026-01-05.md")
    run = om("forget", "--match", CODE, "--dry-run")
    named = " ".join(map(str, sorted(told_in)))
    assert run.stderr.splitlines()[-1] == f"om: 3 files of notes still contain it: {named}"
    done = om("forget", "--match", CODE, "--hard", "--yes", "--json").document
    assert done["files"] == sorted(map(str, told_in))
    assert all(CODE in path.read_text("utf-8") for path in told_in)
    told_in[0].unlink()
    env = {"OM_CONSOLIDATE_NOTES": str(notes)}
    assert om("forget", "--match", CODE, "--json", env=env, code=1).document["files"] == sorted(map(str, told_in[1:]))


def test_files_that_tell_what_a_row_does_without_who_said_it_are_named(om: Om) -> None:
    """D6: as `MEMORY.md` has it."""
    memory = om.write("MEMORY.md", "## 2026-01-05\n\n- we ship on Fridays\n")
    om("note", "User: we ship on Fridays")
    [row] = in_sight(om)
    env = {"OM_CONSOLIDATE_NOTES": str(om.folder)}
    assert om("forget", row["id"], "--json", env=env).document["files"] == [str(memory)]


def test_forgotten_words_stay_out_of_daily_notes_and_of_memory_md(om: Om) -> None:
    """XD6: as another list item, as a paragraph, below a heading; in a row, an item, the tail and MEMORY.md."""
    notes = om.folder / "notes"
    notes.mkdir()
    (notes / "2026-03-01.md").write_text(f"# 2026-03-01\n\n- {RULE}\n", "utf-8")
    om("--now", "2026-03-02T10:00", "consolidate", "-q", "--no-places", "--notes", notes)
    assert RULE in om("log").stdout
    number = om("forget", "--match", "harbour gateway", "--json").document["operation"]
    (notes / "2026-05-03.md").write_text(f"# 2026-05-03\n\n* {BARE}\n\n{RULE}\n\n## Rules\n\n1. {RULE}\n", "utf-8")
    keep = ("consolidate", "-q", "--no-places", "--notes", notes)
    om("--now", "2026-05-04T10:00", *keep)
    assert "gateway" not in om("log", "--all").stdout + om("context").stdout + om("items").stdout
    om("--now", "2026-07-04T10:00", *keep, "--archive-after", "30d")
    assert not (notes / "MEMORY.md").exists()
    om("undo", str(number))
    assert RULE in om("log").stdout


class TestUndoing:
    """What was done is taken back."""

    def test_a_reflection_is_taken_back_and_not_made_again_by_itself(self, om: Om) -> None:
        """Neither tick nor reflect redoes it on the same rows; asked for with `--again`, reflect does."""
        reflect = reflected(om, "The port is 8080", "The port is 8081", "The host is db1")
        before = in_sight(om)
        om(*reflect)
        assert len(in_sight(om, "--session", "s")) == 1
        run = om("undo")
        assert run.stdout == "1  reflect  1 row made, 3 rows hidden\n"
        assert [{**each, "last_used_at": None} for each in in_sight(om)] == [
            {**each, "last_used_at": None} for each in before
        ]
        assert "was undone; `--again` makes another" in om(*reflect).stderr
        assert om("tick", *reflect[1:], env={"OM_REFLECT_TOKENS": "1"}, code=1).stdout == ""
        om(*reflect, "--again")
        assert len(in_sight(om, "--session", "s")) == 1

    def test_what_another_operation_stands_on_is_taken_back_after_that(self, om: Om) -> None:
        om(*reflected(om, "The port is 8080", "The host is db1"))
        om("prune", "--keep-last", "0", "--session", "s")
        assert om("undo", "1", code=65).stderr == (
            "om: error: operation 2 has changed what operation 1 made\nhint: undo 2 first: `om undo 2`\n"
        )
        om("undo", "2")
        om("undo", "1")
        assert [text.partition(",")[0] for text in texts(om)] == ["The port is 8080", "The host is db1"]
        assert om("undo", "1", code=65).stderr.startswith("om: error: operation 1 was undone by 4\n")
        assert om("undo", "4", code=65).stderr.startswith("om: error: operation 4 is an undo itself\n")
        assert om("undo", "99", code=65).stderr.startswith("om: error: no operation has the number 99\n")
        assert om("undo", code=65).stderr.startswith("om: error: nothing to undo\n")

    @pytest.mark.parametrize("first", ["prune", "forget"])
    def test_a_message_is_there_again_when_neither_its_pruning_nor_its_forgetting_stands(
        self, om: Om, first: str
    ) -> None:
        """D6: in whatever order they are undone."""
        harbour(om)
        [key] = next(each["message_ids"] for each in in_sight(om) if CODE in each["text"])
        om("prune", "--raw", "--older-than", "1d")
        om("forget", key)
        run = om("undo", "1" if first == "prune" else "2")
        assert f"undo those as well ({2 if first == 'prune' else 1})" in run.stderr
        om("show", key, code=65)
        run = om("undo")
        assert "stay hidden" not in run.stderr
        assert CODE in om("show", key).stdout

    def test_what_was_forgotten_while_it_waited_is_observed_once_when_it_is_back(self, om: Om) -> None:
        """F1: although the session was observed beyond it meanwhile."""
        talk = Talk().user(f"We decided that the code is {CODE}.").assistant("Fine.").user("We decided to use tabs.")
        path = om.write("t.jsonl", talk.text())
        om("observe", "--later", path)
        om("forget", "--match", CODE)
        path.write_text(talk.assistant("Fine.").text(), "utf-8")
        om("observe", path)
        assert om("sessions", "--jsonl").lines[0]["pending"] == 0
        om("undo")
        assert (om("sessions", "--jsonl").lines[0]["pending"], om("status", "--json").document["pending"]) == (1, 1)
        assert CODE in om("pending", "--session", talk.session).stdout
        assert om("prune", "--raw", "--older-than", "1d", "--dry-run", "--json", *NOW).document["messages"] == 2
        for _ in range(2):
            om("observe", path)
            assert [CODE in text for text in texts(om)].count(True) == 1
        assert om("sessions", "--jsonl").lines[0]["pending"] == 0
        assert "tick" not in om("history").stdout

    def test_an_agent_may_observe_what_came_back(self, om: Om) -> None:
        talk = Talk().user(f"We decided that the code is {CODE}.").assistant("Fine.").user("We decided to use tabs.")
        om("observe", "--later", om.write("t.jsonl", talk.text()))
        om("forget", "--match", CODE)
        om("observe", om.folder / "t.jsonl")
        om("undo")
        waiting = om("pending", "--session", talk.session, "--json").document
        given = om.write("given.json", json.dumps({"token": waiting["token"], "observations": []}))
        om("apply", given)
        assert om("sessions", "--jsonl").lines[0]["pending"] == 0
        assert om("apply", given, code=75).stdout == ""

    def test_a_dry_run_says_what_would_come_back_and_changes_nothing(self, om: Om) -> None:
        """F88: with `--json` the same."""
        harbour(om)
        [row] = [each for each in in_sight(om) if CODE in each["text"]]
        om("forget", "--match", CODE)
        before = om("history").stdout, om("log", "--all").stdout
        run = om("undo", "--dry-run")
        assert run.stdout.splitlines()[0] == "1  forget  1 row hidden, 1 message"
        assert handle(row["id"]) in run.stdout.splitlines()[1]
        assert run.stdout.splitlines()[1].endswith(row["text"]), "as it will be, and not as dropped"
        assert run.stdout.splitlines()[2].startswith(row["message_ids"][0])
        assert run.stderr == "operation 1 would be undone\n"
        planned = om("undo", "1", "--dry-run", "--json").document
        assert (om("history").stdout, om("log", "--all").stdout) == before
        assert ([each["id"] for each in planned["rows"]], planned["dry_run"]) == ([row["id"]], True)
        done = om("undo", "--json").document
        assert done == {**planned, "dry_run": False, "operation": 2}
        assert om("undo", "--dry-run", code=65).stdout == ""

    def test_a_dry_run_names_what_a_reflection_made_and_would_take_along(self, om: Om) -> None:
        om(*reflected(om, "The port is 8080", "The host is db1"))
        [made] = in_sight(om, "--session", "s")
        run = om("undo", "--dry-run")
        assert len(run.stdout.splitlines()) == 4
        assert run.stdout.splitlines()[3].startswith(handle(made["id"]))
        assert run.stdout.endswith(" (will be hidden)\n")
        assert in_sight(om, "--session", "s") == [made]

    def test_json_does_the_same(self, om: Om) -> None:
        """F88."""
        om("note", "x", "--session", "s")
        om("prune", "--keep-last", "0")
        done = om("undo", "--json").document
        assert (done["undone"]["number"], done["undone"]["verb"], done["operation"]) == (1, "prune", 2)
        assert texts(om) == ["x"]


class TestHistory:
    """What was done, newest first."""

    def test_it_tells_what_was_done_when_where_and_what_became_of_it(self, om: Om) -> None:
        om("note", "a", "--session", "s")
        om("note", "b", "--session", "s")
        om("prune", "--keep-last", "1", "--session", "s", *NOW)
        om("forget", of(om, "b"), *NOW)
        om("undo", *NOW)
        om("prune", "--hard", "--yes", *NOW)
        assert om("history").stdout.splitlines() == [
            "NUMBER  WHEN              WHAT    WHERE  RESULT        STATE",
            "3       2026-06-01 12:00  undo    -      undid 2",
            "2       2026-06-01 12:00  forget  -      1 row hidden  undone by 3",
            "1       2026-06-01 12:00  prune   s      1 row hidden  final",
        ]
        found = om("history", "--json").document["operations"]
        assert found == om("history", "--jsonl").lines
        assert [each["number"] for each in found] == [3, 2, 1]
        assert [each["can_be_undone"] for each in found] == [False, False, False]
        assert None not in [value for each in found for value in each.values()]
        assert om("history", "--last", "1", "--jsonl").lines == found[:1]

    def test_without_any_that_is_said(self, om: Om) -> None:
        run = om("history")
        assert (run.stdout, run.stderr) == ("", "om: no operations yet\n")
        assert om("history", "--json").document["operations"] == []
        assert not om.has_store

    def test_a_row_tells_by_which_operation_it_was_made_and_hidden(self, om: Om) -> None:
        """S0.40."""
        om(*reflected(om, "The port is 8080", "The host is db1"))
        [made] = in_sight(om, "--session", "s")
        om("prune", "--keep-last", "0", "--session", "s")
        told_of = om("show", made["id"], "--history", "--json").document["history"]
        assert (told_of["made_by"]["verb"], told_of["hidden_by"]["verb"]) == ("reflect", "prune")
        assert [each["text"][:15] for each in told_of["made_of"]] == ["The port is 808", "The host is db1"]
        source = om("show", told_of["replaced"][0]["id"], "--history").stdout
        assert "hidden by     reflect 1," in source
        assert f"replaced by   {handle(made['id'])}" in source


def test_nothing_is_done_where_everything_is_disabled(om: Om) -> None:
    om("note", "x", "--session", "s")
    for command in (["prune", "--keep-last", "0"], ["forget", "--match", "x"], ["undo"], ["prune", "--hard", "--yes"]):
        assert "disabled by" in om(*command, env={"OM_DISABLED": "1"}).stderr
    assert om("history").stdout == ""


def test_history_fits_a_terminal(om: Om) -> None:
    om("note", "x", "--session", "s" * 60)
    om("prune", "--keep-last", "0", "--session", "s" * 60)
    shown = on_terminal(om, "history", columns=72, env={"TERM": "dumb"})
    assert shown
    assert all(len(line) <= 72 for line in shown.splitlines()), shown
