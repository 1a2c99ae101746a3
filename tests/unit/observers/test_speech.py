"""Rows of speech: nearly verbatim, with speaker and type."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omcli.memory.message import MessageKind, Role
from omcli.memory.observation import Priority, Status, Type
from omcli.observers.rules import RuleObserver
from omcli.text.clean import one_line
from omcli.text.phrases import anchors, searchable, unknown_anchors
from tests.batches import Talk


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Add a retry to `fetch_page` in net/client.py, three attempts", Type.REQUEST),
        ("can you split the parser into its own module?", Type.REQUEST),
        ("What does the --strict flag do?", Type.QUESTION),
        ("Always run the linter before committing", Type.INSTRUCTION),
        ("from now on use pnpm, never npm", Type.INSTRUCTION),
        ("Don't touch the migrations folder", Type.INSTRUCTION),
        ("I prefer short commit messages", Type.PREFERENCE),
        ("I'd rather have one table than two", Type.PREFERENCE),
        ("Let's use Postgres for the queue", Type.DECISION),
        ("go with option B", Type.DECISION),
        ("No, that's the wrong file", Type.CORRECTION),
        ("you forgot the tests", Type.CORRECTION),
        ("My name is Ada and I work at Acme", Type.FACT),
        ("We use Python 3.12 in production", Type.FACT),
    ],
)
def test_what_a_person_says_is_kept_word_for_word_with_its_kind(said: str, kind: Type) -> None:
    """S0.24, S1.2, S3.9: requests, questions, instructions, preferences, decisions, corrections and facts."""
    row = Talk().user(said).one()
    assert (row.text, row.type) == (f"User: {said}", kind)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("No, the other quay", Type.CORRECTION),
        ("no use the other quay", Type.CORRECTION),
        ("No guidance on retries is given in the harbour manual.", Type.FACT),
        ("No config file is needed", Type.FACT),
        ("No changes to the schema please", Type.INSTRUCTION),
        ("No new dependencies", Type.INSTRUCTION),
        ("Decision: use SQLite", Type.DECISION),
        ("Final decision - keep the old API", Type.DECISION),
        ("Use pnpm, not npm", Type.DECISION),
        ("Rule: quays are named in lower case", Type.INSTRUCTION),
        ("This repo uses pnpm", Type.FACT),
        ("thanks, now add a test", Type.REQUEST),
    ],
)
def test_a_short_prompt_has_the_kind_of_what_it_says(said: str, kind: Type) -> None:
    """XC9."""
    row = Talk().agent("I fixed the parser.").user(said).one()
    assert (row.text, row.type) == (f"User: {said}", kind)


@pytest.mark.parametrize(
    "said", ["hm", "Hmm...", "uh", "thanks", "Thank you, that fixed it", "ty", "go on", "/hlep", "\\clear", ":q", "?"]
)
def test_what_says_nothing_gives_no_row(said: str) -> None:
    """XC9: neither do thanks, nor commands that are mistyped."""
    assert not [text for text in Talk().agent("I fixed the parser.").user(said).texts() if text.startswith("User")]


def test_a_route_that_answers_a_question_is_kept() -> None:
    """XC9: a slash does not make it a command."""
    rows = Talk().agent("Which route should list the quays?").user("/quays").texts()
    assert "User: /quays (answering: Which route should list the quays?)" in rows


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Entscheidung: SQLite", Type.DECISION),
        ("Décision : SQLite", Type.DECISION),
        ("Decisión: SQLite", Type.DECISION),
        ("Решение: SQLite", Type.DECISION),
        ("决定:用 SQLite", Type.DECISION),
        ("결정: SQLite", Type.DECISION),
        ("Verwende pnpm statt npm", Type.DECISION),
        ("Utilise pnpm au lieu de npm", Type.DECISION),
        ("用 pnpm 代替 npm", Type.DECISION),
        ("npmではなくpnpmを使って", Type.DECISION),
        ("Pushe nie direkt auf main", Type.INSTRUCTION),
        ("Bitte keine neuen Abhängigkeiten", Type.INSTRUCTION),
        ("Ne touche pas aux migrations", Type.INSTRUCTION),
        ("No toques las migraciones", Type.INSTRUCTION),
        ("Não mexa nas migrações", Type.INSTRUCTION),
        ("Non toccare le migrazioni", Type.INSTRUCTION),
        ("Не трогай миграции", Type.INSTRUCTION),
        ("不要直接推送到 main", Type.INSTRUCTION),
        ("mainに直接pushしないでください", Type.INSTRUCTION),
        ("main에 직접 push하지 마세요", Type.INSTRUCTION),
        ("Der Test ist noch nie gelaufen", Type.REQUEST),
        ("Klappt nie", Type.REQUEST),
        ("Füge bitte einen Test hinzu", Type.REQUEST),
    ],
)
def test_rules_and_decisions_in_other_languages_are_no_requests(said: str, kind: Type) -> None:
    """XC9: and requests stay requests."""
    row = Talk().agent("I fixed the parser.").user(said).one()
    assert (row.text, row.type) == (f"User: {said}", kind)


_PLAN = """# Offline tide tables

## Context

The tables are fetched on every request, which is slow on the ferry.

## Steps

- Add a `TideCache` to src/cache.py
- Store the tables in SQLite, one row for each harbour

```sh
# not a heading
make tides
```

### Later

- Evict tables after 30 days

## Verification

Run `make tides` twice; the second run must not open a socket.
"""
_OF_CLIENT = (
    "If you need specific details from before exiting plan mode (like exact code snippets, error messages, or content "
    "you generated), read the full transcript at: /home/ada/.claude/projects/tides/5d0c.jsonl"
)


@pytest.mark.parametrize(
    "lead",
    [
        "Implement the following plan:",
        "Implement the plan in docs/plans/tides.md:",
        "Please execute this plan.",
        "Build what docs/specs/tides.md describes",
        "Setze diesen Plan um:",
        "",
    ],
)
@pytest.mark.parametrize("end", ["", f"\n\n{_OF_CLIENT}"])
def test_a_plan_is_one_request_with_its_title_and_headings_in_order(lead: str, end: str) -> None:
    """XC1: its steps are parts of it, and nothing of the client's is the user's."""
    rows = Talk().user(f"{lead}\n\n{_PLAN}{end}".strip()).observed()
    assert [row.text for row in rows if row.type is Type.REQUEST] == [
        f"User: {lead} Offline tide tables: Context · Steps · Verification".replace("  ", " ")
    ]
    assert rows[0].type is Type.REQUEST
    assert any("Add a `TideCache` to src/cache.py · Store the tables in SQLite" in row.text for row in rows)
    assert not any("plan mode" in row.text or "not a heading" in row.text for row in rows)


@pytest.mark.parametrize(
    "said",
    [
        ("Add a retry to src/upload.py.", "Done: I added it.", "It doesn't work, the client still isn't retrying."),
        (
            "Split src/tides.py in two.",
            "I split src/tides.py. I didn't get to the second module.",
            "Show me the readme.",
        ),
        ("Split src/tides.py in two.", "I split it.\n\n## What's left\n\n- the tests\n- the docs of the tides module"),
        ("Add the harbour test.", "Shall I also push to main?", "don't"),
        ("Add the harbour test.", "Shall I also add one for the tides?", "let's do it"),
        ("I keep the harbour data in SQLite files, what's the best way to index them?",),
        ("Fix the test in tests/harbour.py, don't ever touch the main branch",),
    ],
)
def test_curly_apostrophes_are_read_as_straight_ones(said: tuple[str, ...]) -> None:
    def rows(apostrophe: str) -> list[tuple[Type, Status | None, str]]:
        talk = Talk()
        for place, words in enumerate(said):
            (talk.agent if place % 2 else talk.user)(words.replace("'", apostrophe))
        return [(row.type, row.status, row.text.replace(apostrophe, "'")) for row in talk.observed()]

    assert rows("\u2019") == rows("'")


def test_what_introduces_a_plan_at_length_is_kept_apart() -> None:
    """XC1."""
    lead = "The ferry has no network for most of its way, so that the captain sees no tides at all. " * 3
    texts = Talk().user(f"{lead}\n\n{_PLAN}").texts()
    assert texts[0] == "User: Offline tide tables: Context · Steps · Verification"
    assert texts[1].startswith("User: The ferry has no network")


def test_a_long_specification_keeps_its_requirements_and_names() -> None:
    """XG9: they are ranked, wherever they stand; the rows are as long as before."""
    filler = "The harbour is a quiet place and many people like to look at the boats in the evening sun there. "
    must = "The exporter must never write to /srv/quays without a lock."
    name = "`BerthPlanner` in src/plan/berths.py answers for berth_12 and berth_40."
    texts = Talk().user(f"Rework the exporter.\n\n{filler * 15}{must} {filler * 15}{name} {filler * 15}").texts()
    assert any(must in text for text in texts)
    assert any(name in text for text in texts)
    assert texts[0].startswith("User: Rework the exporter.")
    assert sum(map(len, texts)) < 1800


@pytest.mark.parametrize("kind", ["Always use tabs", "I prefer tabs", "Let's use tabs", "No, use tabs"])
def test_what_binds_later_work_is_high(kind: str) -> None:
    """prompts.md §6: lasting preferences, constraints and decisions are high, and outweigh a request."""
    row = Talk().user(kind).one()
    assert Priority.of_importance(row.importance) is Priority.HIGH
    assert row.importance > Talk().user("Add a test for tabs").one().importance


def test_a_lasting_rule_inside_a_request_is_a_row_of_its_own() -> None:
    """S3.9, O8: kept as the literal phrase."""
    rows = (
        Talk().user("Please add the export command. Always write the changelog entry first. Then tell me.").observed()
    )
    assert [(row.type, row.text) for row in rows] == [
        (Type.REQUEST, "User: Please add the export command. Then tell me."),
        (Type.INSTRUCTION, "User: Always write the changelog entry first."),
    ]


@pytest.mark.parametrize(
    "reply", ["yes", "Yes please!", "ok", "go ahead", "sounds good", "sure, go ahead", "sí", "好的"]
)
def test_a_bare_yes_is_a_decision_about_what_was_asked(reply: str) -> None:
    """O9: what was agreed to is in the agent's words, since the answer has none."""
    talk = Talk().agent("The cache is stale. Shall I drop the `sessions` table?").user(reply)
    decision = next(row for row in talk.observed() if row.type is Type.DECISION)
    assert decision.text == f'User agreed ("{reply}") to: Shall I drop the `sessions` table?'
    assert decision.sources == (1, 2)


def test_a_bare_no_is_a_decision_too() -> None:
    talk = Talk().agent("Shall I also rename the module?").user("no thanks")
    [declined] = [row for row in talk.observed() if "declined" in row.text]
    assert declined.text == 'User declined ("no thanks") to: Shall I also rename the module?'
    assert (declined.type, declined.status) == (Type.DECISION, None), "nothing is left to be done"


def test_a_yes_to_an_offer_starts_work_and_decides_nothing() -> None:
    """F53: it is of no use to a later session."""
    talk = Talk().agent("The parser drops the last line. Want me to fix this?").user("yes")
    assert [row.type for row in talk.observed() if "agreed" in row.text] == [Type.REQUEST]


def test_a_short_answer_keeps_its_question() -> None:
    """O6: each row makes sense alone."""
    talk = Talk().agent("Which port should the server use?").user("8443, like staging")
    assert "User: 8443, like staging (answering: Which port should the server use?)" in talk.texts()


@pytest.mark.parametrize("said", ["thanks!", "Hello", "Great, thank you!", "wow nice", "Hey! Good to see you!"])
def test_courtesies_give_no_row(said: str) -> None:
    """prompts.md §6: not recorded."""
    assert Talk().user(said).observed() == ()


def test_a_chat_of_people_keeps_what_is_stated_and_leaves_courtesies_and_questions() -> None:
    """S1.2: two people with names, and no agent to instruct."""
    talk = Talk().user("Hey Bea! Good to see you! How have you been?", name="Ada")
    talk.user("Great! I always wanted to sail, and last week I bought a small boat. You?", name="Bea")
    talk.user("I love boats that are slow and quiet.", name="Ada")
    assert [(row.type, row.text) for row in talk.observed()] == [
        (Type.FACT, "Bea: always wanted to sail, and last week I bought small boat"),
        (Type.PREFERENCE, "Ada: I love boats that are slow and quiet"),
    ]


def test_a_speaker_is_called_by_name() -> None:
    assert Talk().user("I moved to Lisbon in March", name="Bea").texts() == ["Bea: I moved to Lisbon in March"]


def test_pasted_code_becomes_a_note_of_its_size() -> None:
    """O12: text that can be read again is not memory."""
    code = "```python\n" + "\n".join(f"line_{n} = {n}" for n in range(30)) + "\n```"
    assert Talk().user(f"Why does this hang?\n{code}\nIt worked yesterday.").texts() == [
        "User: Why does this hang? [30 lines of code] It worked yesterday."
    ]


def test_a_long_prompt_keeps_whole_sentences_a_row_for_a_few_of_them() -> None:
    """Invariant 6, S0.26: selection, never a cut in the middle of a name; one row holds what one line can."""
    sentences = [f"Step {n} must call handler_{n} before module_{n}.run is used in src/part_{n}.py." for n in range(60)]
    texts = Talk().user(" ".join(sentences)).texts()
    assert all(len(text.split()) <= 60 for text in texts)
    assert sum(map(len, texts)) < 1800
    assert texts[0].startswith(f"User: {sentences[0]}")
    assert texts[-1].endswith("more lines]")
    for text in texts:
        kept = text.removeprefix("User: ").partition(" … [")[0]
        assert all(f"{piece.strip('.')}." in sentences for piece in kept.replace(". Step", ".\0Step").split("\0"))


def test_the_report_of_a_turn_is_one_row() -> None:
    """S1.2, O18: a reported result of a turn that used tools is done."""
    talk = (
        Talk()
        .user("Fix the login redirect")
        .tool("Edit", {"file_path": "auth.py", "old_string": "a", "new_string": "b"}, "ok")
    )
    talk.agent("Done. Fixed the redirect in `auth.py`: `next_url` was dropped. All 41 tests pass.")
    outcome = next(row for row in talk.observed() if row.type is Type.OUTCOME)
    assert outcome.text == "Agent: Fixed the redirect in `auth.py`: `next_url` was dropped. All 41 tests pass."
    assert outcome.status is Status.DONE


def test_narration_on_the_way_gives_no_row_but_findings_do() -> None:
    """S1.2: intent and progress, not noise."""
    talk = Talk().user("Why is it slow?").agent("Let me look at the profiler output.")
    talk.tool("Read", {"file_path": "prof.txt"}, "…")
    talk.agent("The root cause is that `load_all` runs once per row.").tool("Read", {"file_path": "db.py"}, "…")
    talk.agent("I'll fix that next.")
    texts = talk.texts()
    assert "Agent: The root cause is that `load_all` runs once per row." in texts
    assert not any("Let me look" in text or "I'll fix" in text for text in texts)


def test_a_hint_for_a_case_is_kept_but_an_offer_is_not() -> None:
    """Both begin with "if you want", and only one tells something."""
    talk = Talk().user("Add a cache").tool("Edit", {"file_path": "a.py", "old_string": "a", "new_string": "b"}, "ok")
    talk.agent(
        "The cache is in `tides.py`. If you need more room, set CACHE_ROOM=big. If you want, I can add `cache.toml`."
        " I'll use SQLite for it because it is simple."
    )
    texts = "\n".join(talk.texts())
    assert "CACHE_ROOM=big" in texts
    assert "SQLite" in texts
    assert "cache.toml" not in texts


def test_a_blocker_is_open() -> None:
    """S0.24: errors and what is missing."""
    talk = Talk().user("Deploy it").agent("I built the image. I cannot push: the registry requires your credentials.")
    blocker = next(row for row in talk.observed() if row.type is Type.BLOCKER)
    assert blocker.text == "Agent: I cannot push: the registry requires your credentials."
    assert blocker.status is Status.OPEN


def test_a_question_of_the_agent_stays_open_until_it_is_answered() -> None:
    """O3: questions are told apart from statements."""
    asked = (
        Talk()
        .user("Set up the database")
        .agent("The schema is ready. Which timezone should timestamps use in reports?")
    )
    question = next(row for row in asked.observed() if row.type is Type.QUESTION)
    assert (question.text, question.status) == ("Agent: Which timezone should timestamps use in reports?", Status.OPEN)
    answered = asked.user("UTC everywhere, for every report that we send out to our customers")
    assert all(row.type is not Type.QUESTION for row in answered.observed())


@pytest.mark.parametrize(
    ("kind", "said", "text", "type_"),
    [
        (
            MessageKind.ANSWER,
            "Which database? -> Postgres",
            "User answered: Which database? -> Postgres",
            Type.DECISION,
        ),
        (
            MessageKind.REMARK,
            "use the staging key instead",
            "User refused: use the staging key instead",
            Type.CORRECTION,
        ),
        (MessageKind.QUEUED, "also bump the version", "User: also bump the version", Type.REQUEST),
    ],
)
def test_words_outside_of_prompts_are_kept(kind: MessageKind, said: str, text: str, type_: Type) -> None:
    """formats.md §1, where a person speaks: a user's "no" is a decision, and so is an answer."""
    row = Talk().user(said, kind=kind).one()
    assert (row.text, row.type) == (text, type_)


def test_a_refused_call_is_what_was_said_about_it_and_no_failure() -> None:
    """formats.md §1: a rejection is a decision, not an error."""
    talk = Talk().tool("Bash", {"command": "git commit -m x"}, "add the test first", failed=True)
    talk.add(replace(talk.kept[1].message, role=Role.USER, kind=MessageKind.REMARK))
    assert talk.texts() == ["User refused Bash: add the test first"]
    assert talk.one().sources == (1, 3)


def test_of_questions_that_were_answered_in_part_the_answers_are_kept() -> None:
    """The client's text around them is left out."""
    poll = 'The person wants to talk about these.\n\n    Questions asked:\n- "Which sea?"\n  {}\n- "Which boat?"\n  {}'
    answered = Talk().user(poll.format("Answer: the North Sea", "(No answer provided)"), kind=MessageKind.REMARK)
    assert answered.texts() == ["User answered: Which sea? → the North Sea"]
    nothing = Talk().user(poll.format("(No answer provided)", "(No answer provided)"), kind=MessageKind.REMARK)
    assert nothing.texts() == []


def test_a_subagents_prompt_is_not_the_users() -> None:
    """formats.md §0: in a subagent's transcript the "user" is the parent agent."""
    assert Talk().user("Always answer in JSON", kind=MessageKind.DELEGATED).observed() == ()


def test_rows_carry_the_instant_of_their_message() -> None:
    """S0.29: `event_at` is when it was said."""
    assert Talk().user("Use port 8443").one().event_at == "2026-03-02T10:00:00.000Z"


def test_the_same_words_again_are_one_row_with_both_sources() -> None:
    row = Talk().user("Check the build on main again").user("Check the build on main again").one()
    assert row.sources == (1, 2)


@pytest.mark.parametrize(
    "said",
    [
        "Bitte benutze ab jetzt immer Port 8443 für den Dienst `api-gateway`",
        "Убери кэш из модуля src/cache.py",
        "请把 src/cache.py 里的缓存去掉，改用 Postgres。",
        "src/cache.py のキャッシュを削除してください。",
    ],
)
def test_other_languages_are_kept_as_they_are(said: str) -> None:
    """S1.20, O24: in the language of the conversation, names as written."""
    row = Talk().user(said).observed()[0]
    assert row.text == f"User: {said}"


_WORDS = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=120)
_TEXTS = st.lists(
    st.one_of(_WORDS, st.sampled_from("`a_b()` src/x_y.py --dry-run v1.2.3 #4711 fixed. because always".split())),
    max_size=12,
).map(" ".join)  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(["user", "agent", "tool"]), _TEXTS), max_size=8))
def test_every_anchor_of_a_row_occurs_in_its_sources(turns: list[tuple[str, str]]) -> None:
    """V9, invariant 8: whatever is said, no row names a thing that its messages don't name, and rows are one line."""
    talk = Talk()
    for who, text in turns:
        if who == "tool":
            talk.tool("Edit", {"file_path": text, "old_string": text[:5], "new_string": text[5:]}, text)
        else:
            (talk.user if who == "user" else talk.agent)(text)
    known = {kept.seq: searchable(f"{kept.message.tool or ''} {kept.message.text}") for kept in talk.kept}
    for row in talk.observed():
        assert unknown_anchors(row.text, [known[seq] for seq in row.sources]) == (), row.text
        assert row.sources == tuple(sorted(set(row.sources)))
        assert "\n" not in row.text
        assert row.text.strip()


def test_observing_is_deterministic() -> None:
    talk = Talk().user("Add `x_y` to a.py").agent("Added `x_y` to a.py; tests pass.")
    assert RuleObserver().observe(talk.batch()) == RuleObserver().observe(talk.batch())


def test_anchors_are_paths_names_flags_versions_ids_numbers_and_addresses() -> None:
    text = "`make all` in src/app/main.py --fast on v1.2.3, https://x.org/a?b=1, #42, E0308, get_name, a1b2c3d4, 8443"
    found = anchors(text)
    for anchor in (
        "make all",
        "src/app/main.py",
        "--fast",
        "v1.2.3",
        "https://x.org/a?b=1",
        "#42",
        "E0308",
        "get_name",
        "8443",
    ):
        assert anchor in found
    assert anchors("this and/or that, 3 files") == ()


@pytest.mark.parametrize(
    "said",
    [
        "please keep the old handler, "
        + ", ".join(f"rename module_{n} to part_{n}" for n in range(60))
        + ", and stop there",
        "请把缓存去掉，" + "，".join("改用数据库" for _ in range(260)),
        "字" * 3000,
        "x" * 3000,
    ],
    ids=["one long sentence", "Chinese commas", "no punctuation", "data"],
)
def test_a_prompt_that_is_one_long_run_still_says_something(said: str) -> None:
    """Invariant 6: as much of it as fits, cut between clauses, words or characters of a script without spaces."""
    row = Talk().user(said).observed()[0]
    shown = row.text.removeprefix("User: ")
    assert 20 < len(shown) <= 1300
    assert shown[:60] == said[:60] or "[a long text without spaces]" in shown


def test_the_note_of_a_cut_stands_where_the_text_was_cut() -> None:
    """An ellipsis that the person wrote stays."""
    row = Talk().user("look… " + "x" * 3000).observed()[0]
    assert row.text == "User: look… [a long text without spaces]"


@pytest.mark.parametrize(
    "run",
    [
        "x",
        "-",
        "汉",
        "a ",
        "**a",
        "`",
        "| a |\n",
        "```py\n",
        "never ",
        "a, ",
        "error: x\nbuild\n",
        "ok please ",
        "test - ",
    ],
)
def test_hostile_prompts_take_linear_time(run: str) -> None:
    """A prompt and an answer of 50 kB each; the square of it would take a minute."""
    long = run * (50_000 // len(run))
    began = time.process_time()
    Talk().user(long).agent(long).observed()
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    ("said", "not_a"),
    [
        ("But I never saw the window open.", Type.INSTRUCTION),
        ("I always wanted a boat.", Type.INSTRUCTION),
        ("Every time I click it, the page reloads.", Type.INSTRUCTION),
        ("This allows true generation rather than static templates.", Type.DECISION),
    ],
)
def test_a_statement_with_the_words_of_a_rule_is_not_a_rule(said: str, not_a: Type) -> None:
    """O3: assertion and intent are told apart."""
    assert Talk().user(said).one().type is not not_a


@pytest.mark.parametrize(
    "said", ["Typecheck is still waiting on the declaration output.", "The build is underway; tests are still passing."]
)
def test_progress_is_neither_a_result_nor_a_blocker(said: str) -> None:
    talk = Talk().user("Build it").tool("Bash", {"command": "make"}, "ok").agent(said)
    assert not {row.type for row in talk.observed()} & {Type.BLOCKER, Type.OUTCOME}


def test_rows_of_a_table_name_their_columns() -> None:
    """O6: each row makes sense alone."""
    table = "Both compared:\n\n| operation | notes | trailers |\n|---|---|---|\n| squash merge | orphaned | kept |"
    text = next(text for text in Talk().user("Which one survives?").agent(table).texts() if "squash" in text)
    assert "squash merge | notes: orphaned | trailers: kept" in text


def test_a_table_in_a_prompt_stays_as_it_was_written() -> None:
    """O26: short prompts are kept word for word."""
    assert Talk().user("Fill in the gaps:\n| name | port |\n|---|---|\n| api | 8443 |").texts() == [
        "User: Fill in the gaps: | name | port | | api | 8443 |"
    ]


# ---- one fact per row


def test_a_long_prompt_gives_a_row_for_each_thing_it_says() -> None:
    """S0.26, O6: facts, decisions, preferences and questions are found one by one, each with its own kind."""
    talk = Talk().user(
        "I'm Ida, a cabinet maker in Bergen, and this is for the workshop. I've decided on oak over ash because it "
        "takes the stain better. The delivery moved from 3 May to 9 May. I prefer drawings in millimetres. "
        "How do I keep the long boards from warping until they arrive?"
    )
    assert [(row.type, row.text, row.importance) for row in talk.observed()] == [
        (Type.FACT, "User: I'm Ida, a cabinet maker in Bergen, and this is for the workshop.", 7),
        (Type.DECISION, "User: I've decided on oak over ash because it takes the stain better.", 8),
        (Type.FACT, "User: The delivery moved from 3 May to 9 May.", 9),
        (Type.PREFERENCE, "User: I prefer drawings in millimetres.", 8),
        (Type.QUESTION, "User: How do I keep the long boards from warping until they arrive?", 5),
    ]


def test_a_question_after_a_comma_is_split_from_the_statement_before_it() -> None:
    """O3, O4: a statement outweighs the question that follows it in the same breath."""
    talk = Talk().user("I prefer small pull requests over big ones, can you help me with that?")
    assert [(row.type, row.text) for row in talk.observed()] == [
        (Type.PREFERENCE, "User: I prefer small pull requests over big ones")
    ]


@pytest.mark.parametrize(
    ("said", "row"),
    [
        (
            "Let's use SQLite instead of Postgres. Because nobody here wants to run a server.",
            "User: Let's use SQLite instead of Postgres. Because nobody here wants to run a server.",
        ),
        (
            "We'll go with option B, since A breaks the old clients.",
            "User: We'll go with option B, since A breaks the old clients.",
        ),
    ],
)
def test_a_decision_keeps_its_reason_and_what_was_rejected(said: str, row: str) -> None:
    """O9, O10, S0.24: in one row, also where the reason is the next sentence."""
    story = " The rest of the plan stays as it was written down on Monday, with the review after the second milestone."
    for text in (said, said + story * 3):
        decisions = [draft.text for draft in Talk().user(text).observed() if draft.type is Type.DECISION]
        assert decisions == [row] if text != said else decisions[0] == row


@pytest.mark.parametrize(
    ("talk", "priority", "status"),
    [
        (Talk().user("I work at Acme"), Priority.HIGH, None),
        (Talk().user("prefer terse"), Priority.HIGH, None),
        (
            Talk()
            .user("guard it")
            .tool("Edit", {"file_path": "a.py", "old_string": "a", "new_string": "b"}, "ok")
            .agent("Null check added, tests pass."),
            Priority.HIGH,
            Status.DONE,
        ),
        (
            Talk()
            .user("why?")
            .tool("Read", {"file_path": "a.py"}, "…")
            .agent("The cause is probably that `load_all` reads a stale row."),
            Priority.MEDIUM,
            None,
        ),
        (
            Talk()
            .user("why?")
            .tool("Read", {"file_path": "a.py"}, "…")
            .agent("Maybe it is the cache, but I am not digging in."),
            Priority.LOW,
            None,
        ),
    ],
    ids=["who somebody is", "a preference", "finished work", "a hypothesis", "idle speculation"],
)
def test_importance_says_how_bad_it_would_be_to_lose_a_row(
    talk: Talk, priority: Priority, status: Status | None
) -> None:
    """T24, O18, O23: facts about the user, preferences and finished work are high, a hypothesis is medium."""
    passed_over = (Type.FILE_READ, Type.FILE_MODIFIED, Type.QUESTION)
    row = next(row for row in reversed(talk.observed()) if row.type not in passed_over)
    assert (Priority.of_importance(row.importance), row.status) == (priority, status)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("The port of the API is 8080.", Type.FACT),
        ("Deploys happen on Fridays", Type.FACT),
        ("our staging cluster lives in Falkenstein", Type.FACT),
        ("The API should be on port 8080.", Type.REQUEST),
        ("Make the port 8080.", Type.REQUEST),
        ("Let two runs write at once", Type.REQUEST),
        ("The port is 8080, please change it.", Type.REQUEST),
        ("Is the port 8080", Type.QUESTION),
    ],
)
def test_a_statement_is_a_fact_and_no_open_request(said: str, kind: Type) -> None:
    """S3.9: assertion, question and intent are told apart."""
    (row,) = Talk().user(said).observed()
    assert row.type is kind


def test_an_agreed_refactor_is_kept_and_the_search_before_it_is_not() -> None:
    """T25: a row that names `requireApiKey`, and no line of the search."""
    talk = Talk().user("where do we check keys?")
    talk.tool("Grep", {"pattern": "apiKey"}, "src/a.ts:14: if (apiKey)\nsrc/b.ts:40: apiKey ??")
    talk.agent("Both handlers check it themselves. Shall I move the check into `requireApiKey`?").user("yes")
    texts = [row.text for row in talk.observed() if row.importance >= 4]
    assert 'User agreed ("yes") to: Shall I move the check into `requireApiKey`?' in texts
    assert not any("src/a.ts:14" in text for text in talk.texts())


def test_weighing_options_is_not_a_decision() -> None:
    """O3: "I'm thinking of using X" decides nothing, and "should we?" is a question."""
    assert Talk().user("I'm thinking of using a queue here").one().type is Type.PLAN
    assert Talk().user("Should we use a queue here?").one().type is Type.QUESTION
    assert Talk().user("We'll use a queue here").one().type is Type.DECISION


# ---- what agents say


def test_an_answer_without_tools_is_kept_in_few_words() -> None:
    """O12, O20: a tutorial can be read again; what it recommends is enough."""
    steps = "\n".join(
        f"{n}. **Step {n}**: First open the panel and then press the button number {n}." for n in range(40)
    )
    talk = Talk().user("How do I set up the printer?")
    talk.agent(f"Sure! Here's a guide:\n\n{steps}\n\nI'd recommend the PLA profile for a first print.")
    rows = [row for row in talk.observed() if row.text.startswith("Agent")]
    assert sum(len(row.text) for row in rows) < 500
    assert "Agent: I'd recommend the PLA profile for a first print." in [row.text for row in rows]
    assert all(Priority.of_importance(row.importance) is not Priority.HIGH for row in rows)


def test_a_report_of_work_is_a_row_for_each_thing_done() -> None:
    """O6, O18: paths and numbers in the words around them, under the heading that names what they are about."""
    talk = Talk().user("Add the export").tool("Write", {"file_path": "export.py", "content": "x"}, "ok")
    talk.agent(
        "Done! I added the export command.\n\n**Changes in `export.py`:**\n- Added `write_csv()` with a header row\n"
        "- Replaced the loop in `rows()`, which read the file twice for each of the 4,000 lines\n\n"
        "Next steps:\n- Add `write_json()` as well"
    )
    said = [(row.type, row.text) for row in talk.observed() if row.text.startswith("Agent")]
    assert said == [
        (Type.OUTCOME, "Agent: I added the export command."),
        (
            Type.OUTCOME,
            "Agent: Changes in `export.py`: Added `write_csv()` with a header row",
        ),
        (
            Type.OUTCOME,
            "Agent: Replaced the loop in `rows()`, which read the file twice for each of the 4,000 lines",
        ),
        (Type.PLAN, "Agent: Next steps: Add `write_json()` as well"),
    ]


def test_what_an_agent_names_on_the_way_is_a_low_row() -> None:
    """O7, S4.4: where it looks, and at what, is worth little, but names things that come up again."""
    talk = Talk().user("Why?").agent("Now let me read how `resolve_path` treats symbolic links.")
    rows = talk.tool("Read", {"file_path": "p.py"}, "…").agent("It follows them.").observed()
    told = {row.text: row.importance for row in rows}
    assert told["Agent: Now let me read how `resolve_path` treats symbolic links."] == 3


@pytest.mark.parametrize(
    "said", ["Sure, here's the code:", "Here is what I have:", "I can help you with that.", "Great!"]
)
def test_a_sentence_that_only_opens_gives_no_row(said: str) -> None:
    talk = Talk().user("Write it").agent(f"{said}\n```py\nprint(1)\n```")
    assert [row for row in talk.observed() if row.text.startswith("Agent")] == []


# ---- clauses that last, and values that changed


@pytest.mark.parametrize(
    ("said", "asked", "lasts"),
    [
        ("Please fix the login test; I prefer small commits.", "Please fix the login test", "I prefer small commits."),
        ("Can you rename the module? I prefer short names.", "Can you rename the module?", "I prefer short names."),
        (
            "Write the release notes, but never mention internal tickets.",
            "Write the release notes",
            "never mention internal tickets.",
        ),
        (
            "Add a retry to the uploader, and from now on always log the attempt.",
            "Add a retry to the uploader",
            "from now on always log the attempt.",
        ),
        (
            "I've decided to use SQLite, can you write the schema?",
            "can you write the schema?",
            "I've decided to use SQLite",
        ),
        (
            "Summarize chapter four; I like bullet points better than prose.",
            "Summarize chapter four",
            "I like bullet points better than prose.",
        ),
        (
            "How do I bake rye bread, I prefer recipes without sugar.",
            "How do I bake rye bread",
            "I prefer recipes without sugar.",
        ),
        (
            "I prefer spaces over tabs, so please reformat the config loader.",
            "please reformat the config loader.",
            "I prefer spaces over tabs",
        ),
        (
            "Check the invoice, and always give amounts with two decimals.",
            "Check the invoice",
            "always give amounts with two decimals.",
        ),
        ("Update the roster, but I'd rather keep Mondays free.", "Update the roster", "I'd rather keep Mondays free."),
    ],
)
def test_only_the_clause_that_lasts_becomes_lasting(said: str, asked: str, lasts: str) -> None:
    """XC14: the request beside it is done once."""
    request, lasting = Talk().user(said).observed()
    assert (request.text, lasting.text) == (f"User: {asked}", f"User: {lasts}")
    assert request.type in (Type.REQUEST, Type.QUESTION)
    assert lasting.type in (Type.PREFERENCE, Type.DECISION, Type.INSTRUCTION)


@pytest.mark.parametrize(
    ("said", "preferred"),
    [
        ("I prefer short bursts, you know, 30 minutes at a time, can you plan my week?", 3),
        ("I like window seats, on the left, near the front, could you book one?", 3),
        ("My favorite tea is oolong, the roasted kind, what should I buy?", 2),
        ("I'd rather meet early, say at seven, if possible, would you move the call?", 3),
        ("I prefer hiking, well, easy trails, two hours at most, can you suggest one?", 4),
        ("I prefer trains, at night, with a bed, how do I get to Oslo?", 3),
        ("I love tart apples, green ones, not too soft, what can I bake?", 3),
        ("I'm a big fan of jazz, the old kind, so could you list three records?", 2),
        ("I prefer plain words, I mean, no jargon, please explain entropy", 3),
        ("I enjoy spicy food, really spicy, can you recommend a curry?", 2),
    ],
)
def test_a_preference_keeps_what_it_says_up_to_the_question(said: str, preferred: int) -> None:
    """XC7: a comma ends it only before words that ask."""
    content = ", ".join(said.split(", ")[:preferred])
    assert f"User: {content}" in [row.text for row in Talk().user(said).observed() if row.type is Type.PREFERENCE]


@pytest.mark.parametrize(
    "said",
    [
        "The deadline moved from 3 May to 9 May.",
        "We rescheduled the review to 14 June.",
        "The rent increased to 950 euros.",
        "My weekly mileage is now 42 km.",
        "I extended the lease until 30 April 2025.",
        "The quota was adjusted from 40 to 55 seats.",
        "The team has now merged 165 commits.",
        "Is the increased budget of 900 euros enough?",
        "How can I keep my current pace of 5 km per hour?",
        "What follows from our latest score of 87 points?",
    ],
)
def test_a_changed_value_outranks_the_old_one_and_ordinary_facts(said: str) -> None:
    """XG11: also if a question names it."""
    ordinary = ("The deadline is 3 May.", "I read 12 books.", "Is a budget of 800 euros enough?", "My pace is 6 km.")
    assert Talk().user(said).one().importance > max(Talk().user(text).one().importance for text in ordinary)


# ---- people among themselves


def test_a_short_answer_between_people_names_the_question() -> None:
    """O6: and both messages are its sources."""
    talk = Talk().user("How long have you had the boat?", name="Ada").user("Four years already!", name="Bea")
    row = talk.one()
    assert row.text == "Bea: boat: Four years already"
    assert row.sources == (1, 2)


def test_a_long_message_between_people_gives_several_rows() -> None:
    """S0.26, O6: each with who said it; praise and questions give none."""
    talk = (
        Talk()
        .user("Hi Bea!", name="Ada")
        .user(
            "You're a great host, Ada! I spent the whole of last week in Tromsø with my brother, where we repaired the "
            "old harbour crane and slept in the lighthouse. I prefer the north to the islands, because the light is "
            "better in the evening. We'll move there in spring. What about you?",
            name="Bea",
        )
    )
    assert [(row.type, row.text) for row in talk.observed()] == [
        (
            Type.FACT,
            (
                "Bea: spent whole of last week in Tromsø with brother, where we repaired old harbour crane and slept "
                "in lighthouse; We'll move there in spring"
            ),
        ),
        (Type.PREFERENCE, "Bea: I prefer the north to the islands, because the light is better in the evening"),
    ]


# ---- any language


@pytest.mark.parametrize(
    ("said", "kinds"),
    [
        ("Bitte schreib ab jetzt immer auf Deutsch. Wir nehmen die zweite Fassung, weil sie kürzer ist.", 2),
        ("Réponds toujours en français. Je préfère les noms courts.", 2),
        ("A partir de ahora responde siempre en español. Prefiero los nombres cortos.", 2),
        ("以后请都用中文回答。我更喜欢短的名字。", 2),
        ("今後は日本語で答えてください。短い名前のほうが好きです。", 2),
        ("Всегда отвечай по-русски, пожалуйста. Я предпочитаю короткие имена.", 2),
    ],
)
def test_rules_in_other_languages_are_rows_of_their_own_word_for_word(said: str, kinds: int) -> None:
    """S1.20, O24: a row in the language of the conversation, cut between its sentences."""
    rows = Talk().user(said).observed()
    assert len(rows) == kinds
    assert {row.type for row in rows} <= {Type.INSTRUCTION, Type.PREFERENCE, Type.DECISION}
    assert all(row.importance >= 8 for row in rows)
    assert "".join(row.text.removeprefix("User: ") for row in rows).replace(" ", "") == said.replace(" ", "")


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def _by_line(text: str) -> str:
    """A text on one line; what controls a terminal ends with its line, as rows are made line by line."""
    return one_line("\n".join(text.splitlines()))


@given(st.lists(st.tuples(st.sampled_from(["user", "agent", "ada", "bea"]), _TEXTS), max_size=8))
@example([("user", "\x9d0 \x1e\x07")])
def test_every_row_is_near_verbatim(turns: list[tuple[str, str]]) -> None:
    """O7, O8: the words of a row stand in its sources, in their order: a row selects, and words nothing anew."""
    talk = Talk()
    for who, text in turns:
        if who == "agent":
            talk.agent(text)
        else:
            talk.user(text, name=who.title() if who != "user" else None)
    for row in talk.observed():
        if " agreed (" in row.text or " declined (" in row.text or "[" in row.text:
            continue
        said = re.sub(r" \(answering: [^()]*\)", "", row.text.partition(": ")[2])
        spoken = [_by_line(talk.kept[seq - 1].message.text) for seq in row.sources]
        sources = [iter(_words(text)) for text in (*spoken, " ".join(spoken))]  # of one message, or of several in turn
        assert any(all(word in words for word in _words(said)) for words in sources), row.text


def test_a_long_sentence_is_split_at_its_joints() -> None:
    """S0.26: a row is one line of some sixty words, also where somebody never comes to a full stop."""
    said = " and ".join(f"in week {n} we moved the {n} old cabinets from the hall to the barn" for n in range(20))
    texts = Talk().user(said).texts()
    assert len(texts) > 3
    assert all(len(text.split()) <= 65 for text in texts)
    assert " ".join(text.removeprefix("User: ") for text in texts).startswith(said[:300])


TRACE = """Traceback (most recent call last):
  File "/srv/orders/app.py", line 12, in <module>
    main()
  File "/srv/orders/app.py", line 30, in main
    take_in(read_the_delivery(arguments.path), into=open_stock(arguments.stock), on=arguments.day, strictly=False)
  File "/srv/orders/stock.py", line 77, in take_in
    return [price_of(item, in_the_currency_of=stock, on=day) for item in delivery if item.is_new and not item.is_lost]
  File "/srv/orders/app.py", line 8, in price_of
    total = prices["net"]
            ~~~~~~^^^^^^^
KeyError: 'net'"""
TABLE = "\n".join(f"slot {n}\tkeeps the tray of size {n}\tmust be emptied before opening" for n in range(1, 13))
DIFF = """diff --git a/app.py b/app.py
index 1a2b3c4..5d6e7f8 100644
--- a/app.py
+++ b/app.py
@@ -1,4 +1,4 @@ def main():
-    total = prices["gross"]
+    total = prices["net"]
     # always round down, never use floats for money in this function or in any of its callers
"""
LOG = "\n".join(f"2026-03-02 10:0{n}:00 INFO stock: wait for slot {n}, don't use it now" for n in range(8))


class TestPasted:
    """Pasted text asks, rules and corrects nothing, whatever its words."""

    @pytest.mark.parametrize("pasted", [TRACE, TABLE, DIFF, LOG])
    @pytest.mark.parametrize("template", ["It broke today, please find out why:\n{}", "{}\nwhy does it do this?"])
    def test_logs_traces_diffs_and_tables_are_one_row_beside_the_words(self, template: str, pasted: str) -> None:
        rows = Talk().user(template.format(pasted)).observed()
        assert len(rows) == 2
        said, thrown_in = rows
        assert said.text == f"User: {template.format('').strip()}"
        assert said.type in (Type.REQUEST, Type.QUESTION)
        assert thrown_in.type in (Type.FACT, Type.EXCERPT)
        assert f"[{len(pasted.strip().splitlines())} pasted lines]" in thrown_in.text

    def test_a_stack_trace_is_summarised_by_its_error(self) -> None:
        assert (
            Talk().user(f"It broke again, why?\n{TRACE}").texts()[1] == "User pasted: KeyError: 'net' [11 pasted lines]"
        )

    def test_a_prompt_that_only_pastes_is_a_request(self) -> None:
        [row] = Talk().user(TRACE + "\n" + LOG).observed()
        assert (row.type, row.status) == (Type.REQUEST, Status.OPEN)

    def test_a_list_of_wishes_is_not_pasted(self) -> None:
        wishes = [f"- add a test for the case where slot {n} is empty when the tray arrives" for n in range(1, 6)]
        assert not any("pasted" in text for text in Talk().user("\n".join(wishes)).texts())

    @pytest.mark.parametrize("run", ["\t", "a@", "at x", "(a) ", "1\t", '\\\\"', "Error", "a."])
    def test_hostile_lines_take_linear_time(self, run: str) -> None:
        started = time.process_time()
        Talk().user("look at this\n" + run * 10_000).observed()
        assert time.process_time() - started < 2


@pytest.mark.parametrize("said", ["We also need a page for the returns.", "I think we need a switch for the lamp"])
def test_what_is_needed_is_asked_for_where_an_agent_works_and_a_fact_in_a_chat(said: str) -> None:
    at_work = Talk().user(said).tool("Read", {"file_path": "a.py"}, "…").observed()
    assert (at_work[0].type, at_work[0].status) == (Type.REQUEST, Status.OPEN)
    assert Talk().user(said).one().type is Type.FACT


def test_a_question_with_a_remark_behind_it_is_a_question() -> None:
    row = Talk().user("also what is happening with the mill. i thought we had it mended").one()
    assert (row.type, row.status) == (Type.QUESTION, Status.OPEN)


def test_no_need_to_is_an_instruction() -> None:
    row = Talk().user("nobody has the old file format yet, so no need for a converter").one()
    assert (row.type, Priority.of_importance(row.importance)) == (Type.INSTRUCTION, Priority.HIGH)


@pytest.mark.parametrize(
    ("opens", "joint"),
    [
        ("The importer is fixed:", " "),
        ("The importer is fixed, and it works again with all of the files that I was given:", " · "),
    ],
)
def test_the_items_of_a_list_stay_with_what_opens_it(opens: str, joint: str) -> None:
    """O6: an item alone says nothing."""
    report = f"{opens}\n- reads `a.csv`\n- skips `b.csv`\n\nThe `c.csv` is not measured yet."
    rows = Talk().tool("Bash", {"command": "make"}, "ok").agent(report).texts()
    assert f"Agent: {opens}{joint}reads `a.csv` · skips `b.csv`" in rows


def test_progress_of_a_build_gives_no_row_in_the_middle_of_a_turn() -> None:
    """A finding on the way does."""
    talk = Talk().user("Build `shop`").agent("The build of `shop` is still running, nothing to do yet.")
    talk.tool("Bash", {"command": "make shop"}, "ok").agent("I found that `shop` still needs `libfoo`.")
    talk.tool("Bash", {"command": "make libfoo"}, "ok").agent("`shop` is built.")
    said = [text for text in talk.texts() if text.startswith("Agent")]
    assert said == ["Agent: I found that `shop` still needs `libfoo`.", "Agent: `shop` is built."]


@pytest.mark.parametrize("place", ["on port 8443", "at http://localhost:8443"])
def test_where_a_server_runs_is_worth_a_row(place: str) -> None:
    talk = Talk().user("Start it").agent(f"The server is running {place}.")
    talk.tool("Bash", {"command": "curl -s localhost:8443"}, "ok").agent("It answers.")
    assert f"Agent: The server is running {place}." in talk.texts()


def test_an_error_answered_in_json_is_pasted_as_well() -> None:
    answer = '{"error":{"code":"E77","message":"the block must have a lid in the next box"},"request":"r-1"}'
    prompt = f"this is what came back when I sent the big order today:\n{answer}\n{answer}\n" + "what can we do? " * 3
    rows = Talk().user(prompt + "It happens with every order of more than a hundred boxes").observed()
    assert not any(row.type is Type.INSTRUCTION for row in rows)
    assert sum("pasted" in row.text for row in rows) == 1


def test_an_error_that_a_terminal_wrapped_is_pasted_to_its_end() -> None:
    """Else its middle is a rule: "must have a lid in the next"."""
    wrapped = (
        'Error: 400 {"type":"error","message":"boxes.236: no lid was found. Each',
        "`box` on the belt must have a `lid` in the next",
        'crate."},"request":"r-1"}',
    )
    prompt = "this is what came back:\n\n" + "\n".join(f" {line}" for line in wrapped)
    rows = Talk().user(f"{prompt}\n\nhow can we prevent this? {'It happens with every large order. ' * 9}").observed()
    assert not any(row.type is Type.INSTRUCTION for row in rows)
    assert "[3 pasted lines]" in rows[-1].text


@pytest.mark.parametrize("mark", ["-", "1."])
def test_an_indented_list_below_a_line_of_a_log_is_said(mark: str) -> None:
    prompt = f" ERROR: the belt stands still\n ERROR: the crate is open\n {mark} never restart the belt by hand"
    rows = Talk().user(f"Look:\n{prompt}\n{'It happens with every large order. ' * 9}").observed()
    assert Type.INSTRUCTION in {row.type for row in rows}


def test_lines_below_a_clock_are_pasted_with_it() -> None:
    log = ("fatal: no crate was read", "please make sure that you always have the", "right belt, and never two")
    lines = "\n".join(f"07:11:0{n}.212\n {line}" for n, line in enumerate(log))
    rows = Talk().user(f"{lines}\nit used to work with a nested crate. {'It fails with every order. ' * 9}").observed()
    assert not any(row.type is Type.INSTRUCTION for row in rows)
    assert "[6 pasted lines]" in rows[-1].text
