"""What the rules write down of what is said: near-verbatim, by whom, and what kind of thing it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.anchors import anchors, searchable, unsupported
from omcli.memory.message import Aside, Role
from omcli.memory.observation import Priority, Status, Type
from omcli.observers.rules import RuleObserver
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


@pytest.mark.parametrize("kind", ["Always use tabs", "I prefer tabs", "Let's use tabs", "No, use tabs"])
def test_what_binds_later_work_is_high(kind: str) -> None:
    """prompts.md §6: lasting preferences, constraints and decisions are high, and outweigh a request."""
    row = Talk().user(kind).one()
    assert Priority.of_importance(row.importance) is Priority.HIGH
    assert row.importance > Talk().user("Add a test for tabs").one().importance


def test_a_standing_instruction_inside_a_request_is_a_row_of_its_own() -> None:
    """S3.9, O8: kept as the literal phrase."""
    rows = (
        Talk().user("Please add the export command. Always write the changelog entry first. Then tell me.").observed()
    )
    assert [(row.type, row.text) for row in rows] == [
        (Type.REQUEST, "User: Please add the export command. Always write the changelog entry first. Then tell me."),
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
    assert 'User declined ("no thanks") to: Shall I also rename the module?' in talk.texts()


def test_a_yes_to_an_offer_sets_work_going_and_decides_nothing() -> None:
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
        (Type.FACT, "Bea: I always wanted to sail, and last week I bought a small boat."),
        (Type.PREFERENCE, "Ada: I love boats that are slow and quiet."),
    ]


def test_a_speaker_is_called_by_name() -> None:
    assert Talk().user("I moved to Lisbon in March", name="Bea").texts() == ["Bea: I moved to Lisbon in March"]


def test_pasted_code_becomes_a_note_of_its_size() -> None:
    """O12: text that can be read again is not memory."""
    code = "```python\n" + "\n".join(f"line_{n} = {n}" for n in range(30)) + "\n```"
    assert Talk().user(f"Why does this hang?\n{code}\nIt worked yesterday.").texts() == [
        "User: Why does this hang? [30 lines of code] It worked yesterday."
    ]


def test_a_long_prompt_keeps_whole_sentences() -> None:
    """Invariant 6: selection, never a cut in the middle of a name."""
    sentences = [f"Step {n} must call handler_{n} before module_{n}.run is used in src/part_{n}.py." for n in range(60)]
    row = Talk().user(" ".join(sentences)).observed()[0]
    assert len(row.text) < 1300
    assert row.text.startswith(f"User: {sentences[0]}")
    assert "more lines]" in row.text
    kept = row.text.removeprefix("User: ").partition(" … [")[0]
    assert all(f"{piece.strip('.')}." in sentences for piece in kept.replace(". Step", ".\0Step").split("\0"))


def test_what_a_turn_came_to_is_one_row() -> None:
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
    ("aside", "said", "text", "kind"),
    [
        (Aside.ANSWER, "Which database? -> Postgres", "User answered: Which database? -> Postgres", Type.DECISION),
        (Aside.REMARK, "use the staging key instead", "User refused: use the staging key instead", Type.CORRECTION),
        (Aside.QUEUED, "also bump the version", "User: also bump the version", Type.REQUEST),
    ],
)
def test_words_that_stand_where_no_prompt_does_are_kept(aside: Aside, said: str, text: str, kind: Type) -> None:
    """formats.md §1, where a person speaks: a user's "no" is a decision, and so is an answer."""
    row = Talk().user(said, aside=aside).one()
    assert (row.text, row.type) == (text, kind)


def test_a_refused_call_is_what_was_said_about_it_and_no_failure() -> None:
    """formats.md §1: a rejection is a decision, not an error."""
    talk = Talk().tool("Bash", {"command": "git commit -m x"}, "add the test first", failed=True)
    talk.add(replace(talk.kept[1].message, role=Role.USER, aside=Aside.REMARK))
    assert talk.texts() == ["User refused Bash: add the test first"]
    assert talk.one().sources == (1, 3)


def test_a_subagents_prompt_is_not_the_users() -> None:
    """formats.md §0: in a subagent's transcript the "user" is the parent agent."""
    assert Talk().user("Always answer in JSON", aside=Aside.DELEGATED).observed() == ()


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
def test_every_anchor_of_a_row_stands_in_its_sources(turns: list[tuple[str, str]]) -> None:
    """V9, invariant 8: whatever is said, no row names a thing that its messages don't name, and rows are one line."""
    talk = Talk()
    for who, text in turns:
        if who == "tool":
            talk.tool("Edit", {"file_path": text, "old_string": text[:5], "new_string": text[5:]}, text)
        else:
            (talk.user if who == "user" else talk.agent)(text)
    known = {kept.seq: searchable(f"{kept.message.tool or ''} {kept.message.text}") for kept in talk.kept}
    for row in talk.observed():
        assert unsupported(row.text, [known[seq] for seq in row.sources]) == (), row.text
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


@pytest.mark.parametrize("run", ["x", "-", "汉", "a ", "**a", "`", "| a |\n", "```py\n", "never ", "a, "])
def test_hostile_prompts_cost_no_more_than_their_length(run: str) -> None:
    """A prompt of 300 kB; the square of it would take minutes."""
    Talk().user(run * (300_000 // len(run))).agent(run * (300_000 // len(run))).observed()


@pytest.mark.parametrize(
    ("said", "not_a"),
    [
        ("But I never saw the window open.", Type.INSTRUCTION),
        ("I always wanted a boat.", Type.INSTRUCTION),
        ("Every time I click it, the page reloads.", Type.INSTRUCTION),
        ("This allows true generation rather than static templates.", Type.DECISION),
    ],
)
def test_a_statement_with_the_words_of_a_rule_is_none(said: str, not_a: Type) -> None:
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
