"""Types of sentences, in English and by the few cues of other languages."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.observation import Type
from omcli.observers.rules import agents, cues, people_cues

STANDING = (
    "Always answer in full sentences.",
    "Please always cite the paragraph you quote.",
    "From now on, use metric units.",
    "Whenever I ask about a recipe, include the oven temperature.",
    "Never push to main.",
    "Make sure to name the file when you suggest an edit.",
    "When you explain a query, show the plan first.",
    "Going forward, keep the answers short.",
    "Remember to run the formatter.",
)
PREFERENCES = (
    "I prefer oat milk over cow's milk because of the taste.",
    "I'd rather take the night train than fly.",
    "I really like tables with few columns.",
    "I tend to write the tests first.",
    "My favourite editor is Helix.",
    "I'm not a fan of long meetings.",
    "prefer terse",
)
DECISIONS = (
    "Let's use a queue instead of cron.",
    "We'll go with the blue theme, since the red one fails the contrast check.",
    "I've decided on Lisbon for the offsite.",
    "I chose rsync over scp because it resumes.",
    "We settled on Tuesdays.",
    "I'm going with the smaller boat.",
)
CORRECTIONS = (
    "No, the other branch.",
    "that's not what I asked for",
    "You forgot the index.",
    "The second total is not correct.",
    "Actually, it was the north wall.",
)
QUESTIONS = (
    "Should we use a queue?",
    "What does the flag do?",
    "Can you explain how the cache works?",
    "could you suggest a name for it",
    "how do I undo the merge",
    "Do you always sort them?",
    "should we close the ticket as a double of the other one",
    "also what is left of the old importer",
    "is it safe to rename the column now",
    "does our parser read what we've written",
)
REQUESTS = (
    "ok, leave it as it is, can we add some tests?",
    "by the way, could we keep the old table for now?",
    "Can you split the module in two?",
    "Please add a retry.",
    "I need you to rename it.",
)
ORDERS = (
    "ok so summarize what we changed and what we need to look at",
    "Now apply the changes we made to the other shop, which has been waiting.",
    "Do the same for the tables we added.",
    "Then let's make sure the labels fit.",
)
WEIGHED = (
    "I'm thinking of using a queue.",
    "Maybe a cache would do.",
    "We might move to Lisbon.",
    "I'm considering a smaller boat.",
    "I am torn between oak and ash.",
    "I'm not sure we decided on oak.",
    "I don't remember if we chose the boat.",
    "We never decided on Lisbon.",
)
FACTS = (
    "I work at Acme.",
    "My daughter is called Ida.",
    "Our server runs on port 8443.",
    "The response time dropped from 900 ms to 250 ms.",
    "The deadline moved to 4 May.",
    "Test is what we have for now.",
    "We no longer ship the Windows build.",
    "I finished 12 of the 40 chapters.",
)


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        *((sentence, Type.INSTRUCTION) for sentence in STANDING),
        *((sentence, Type.PREFERENCE) for sentence in PREFERENCES),
        *((sentence, Type.DECISION) for sentence in DECISIONS),
        *((sentence, Type.CORRECTION) for sentence in CORRECTIONS),
        *((sentence, Type.QUESTION) for sentence in QUESTIONS),
        *((sentence, Type.REQUEST) for sentence in REQUESTS),
        *((sentence, Type.PLAN) for sentence in WEIGHED),
        *((sentence, Type.FACT) for sentence in FACTS),
    ],
)
def test_sentences_of_people_are_classified(sentence: str, kind: Type) -> None:
    """S0.24, S3.9, O3: a statement is no question, and what is weighed is not decided."""
    assert people_cues.user_type(sentence) is kind
    assert people_cues.user_type(sentence.replace("'", "\u2019")) is kind


@pytest.mark.parametrize(
    ("sentence", "not_a"),
    [
        ("I have always wanted a boat.", Type.INSTRUCTION),
        ("It always fails on Mondays.", Type.INSTRUCTION),
        ("I never saw the window open.", Type.INSTRUCTION),
        ("It looks like rain.", Type.PREFERENCE),
        ("I would like to know why it fails.", Type.PREFERENCE),
        ("There is no problem with that.", Type.CORRECTION),
        ("No worries at all.", Type.CORRECTION),
        ("Nobody knows the port.", Type.CORRECTION),
        ("I'll keep reading.", Type.DECISION),
        ("ok let's keep going", Type.DECISION),
        ("why exactly didn't you use the old importer instead", Type.DECISION),
        ("I've heard that switching to ash could help.", Type.DECISION),
        ("Should we go with the queue?", Type.DECISION),
    ],
)
def test_a_sentence_with_the_words_of_another_kind_is_not_of_it(sentence: str, not_a: Type) -> None:
    """O3: assertion, question and intent."""
    assert people_cues.user_type(sentence) is not not_a


@pytest.mark.parametrize(
    ("sentence", "kind", "importance"),
    [
        ("Always sort by date.", Type.INSTRUCTION, 9),
        ("Don't touch the lock file.", Type.INSTRUCTION, 8),
        ("I prefer short names.", Type.PREFERENCE, 8),
        ("Let's use the queue.", Type.DECISION, 8),
        ("I work at Acme.", Type.FACT, 7),
        ("The limit was raised to 40 per day.", Type.FACT, 9),
        ("Sure, let's look at the harbour map.", None, 5),
        ("I read 12 of the chapters.", Type.FACT, 7),
        ("I've added 52 sources to the library.", Type.FACT, 7),
        ("I've been using version 7 of it.", Type.FACT, 6),
        ("put it in the handler", None, 7),
        ("What is a monad?", Type.QUESTION, 5),
        ("maybe a cache", Type.PLAN, 4),
    ],
)
def test_what_binds_counts_more_than_what_is_asked(sentence: str, kind: Type | None, importance: int) -> None:
    """T24, prompts.md §6: rules, preferences, decisions; who somebody is and what changed; then what was asked."""
    assert people_cues.user_type(sentence) is kind
    assert people_cues.user_importance(sentence, kind) == importance


def test_a_wish_for_a_change_is_not_a_change() -> None:
    """O17: a plan is a plan."""
    assert people_cues.user_importance("We moved the call to Friday.", Type.FACT) == 7
    assert people_cues.user_importance("I want the call moved to Friday.", Type.FACT) < 7


LANGUAGES = {
    "German": ("Bitte schreib ab jetzt immer auf Deutsch.", "Ich mag lieber kurze Namen.",
    "Wir nehmen die zweite Fassung.",
               "Nein, das war die falsche Datei.", "Kannst du das Modul teilen?", "ja gerne", "nein danke",
               "Vielen Dank!"),
    "French": ("Réponds toujours en français.", "Je préfère les noms courts.", "On va garder la première version.",
               "Non, c'est l'autre fichier.", "Peux-tu couper le module en deux ?", "d'accord", "non merci",
               "Merci beaucoup !"),
    "Spanish": ("A partir de ahora responde en español.", "Prefiero los nombres cortos.",
    "Hemos decidido usar la cola.",
                "Eso no es lo que pedí.", "¿Puedes dividir el módulo?", "sí, por favor", "no gracias", "¡Gracias!"),
    "Portuguese": ("Escreva sempre em português.", "Eu prefiro nomes curtos.", "Decidimos ficar com a fila.",
                   "Isso está errado, é o outro.", "Você pode dividir o módulo?", "sim", "não obrigado",
                   "Muito obrigado!"),
    "Italian": ("Rispondi sempre in italiano.", "Preferisco i nomi corti.", "Abbiamo deciso di usare la coda.",
                "Non è giusto, era l'altro.", "Puoi dividere il modulo?", "va bene", "no grazie", "Grazie mille!"),
    "Russian": ("Всегда отвечай по-русски.", "Я предпочитаю короткие имена.", "Мы решили оставить очередь.",
                "Это неправильно, другой файл.", "Можешь разделить модуль?", "да", "нет, спасибо", "Большое спасибо!"),
    "Chinese": ("以后请都用中文回答。", "我更喜欢短的名字。", "我们决定用队列。", "不对，是另一个文件。",
    "请把模块分成两个。",
                "好的", "不用了", "谢谢！"),
    "Japanese": ("今後は日本語で答えてください。", "短い名前のほうが好きです。", "キューを使うことにします。",
                 "違います、別のファイルです。", "モジュールを分けてください。", "はい、お願いします", "いいえ",
                 "ありがとうございます！"),
    "Korean": ("앞으로 한국어로 답해 주세요.", "짧은 이름을 선호합니다.", "큐로 하자.", "틀렸어요, 다른 파일이에요.",
               "모듈을 나눠 주세요.", "네", "아니요", "감사합니다!"),
}  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_most_valuable_types_are_recognised_in_other_languages(language: str) -> None:
    """S1.20, O24: rules, preferences, decisions, corrections, requests, yes, no and courtesies."""
    rule, preference, decision, correction, request, yes, no, thanks = LANGUAGES[language]
    assert people_cues.user_type(rule) is Type.INSTRUCTION
    assert people_cues.is_lasting_rule(rule)
    assert people_cues.user_type(preference) is Type.PREFERENCE
    assert people_cues.user_type(decision) is Type.DECISION
    assert people_cues.user_type(correction) is Type.CORRECTION
    assert people_cues.user_type(request) is Type.REQUEST
    assert cues.is_yes(yes)
    assert not cues.is_yes(no)
    assert cues.is_no(no)
    assert cues.is_courtesy(thanks)


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("The root cause is a stale lock.", Type.FACT),
        ("I recommend the second option.", Type.DECISION),
        ("Fixed the redirect in `auth.py`.", Type.OUTCOME),
        ("`auth.py` - Added the missing check", Type.OUTCOME),
        ("I cannot push: the registry requires your credentials.", Type.BLOCKER),
        ("I'm stuck: the lock belongs to somebody else.", Type.BLOCKER),
        ("A session would be stuck in ACTIVE until its time is up.", None),
        ("The queue was blocked by a stale lock.", None),
        ("Which port should it use?", Type.QUESTION),
        ("Please confirm the address.", Type.QUESTION),
        ("Let me look at the parser.", None),
        ("I'll use SQLite because it is simple.", Type.DECISION),
        ("Okay, I'll go with the second queue.", Type.DECISION),
        ("I'll keep the old route rather than add a second one.", Type.DECISION),
        ("I'll use grep to find the callers.", None),
        ("I can help you with that.", None),
        ("It shows 100 because you committed without edits.", None),
        ("name | resolved: yes", None),
    ],
)
def test_sentences_of_agents_are_classified(sentence: str, kind: Type | None) -> None:
    """S0.24, O18: done is what the agent says it did, not what somebody else once did."""
    assert agents.agent_type(sentence) is kind


@pytest.mark.parametrize(
    ("sentence", "importance"),
    [
        ("I moved to Porto last May.", 6),
        ("We painted the fence.", 5),
        ("My sister works at Acme.", 6),
        ("I'm allergic to shellfish.", 5),
        ("I'll take the ferry.", 5),
        ("I'll take the ferry on Friday.", 6),
        ("The ferry to Porto leaves from the northern quay.", 6),
        ("The ferry leaves from the northern quay.", 4),
        ("We should cherish the harbour and its fishermen.", 4),
        ("In the end we took a long look at the harbour.", 0),
        ("I feel at home here.", 0),
        ("Kindness goes a long way.", 0),
        ("Your bakery must smell of cinnamon and butter!", 0),
    ],
)
def test_between_people_what_somebody_did_and_what_is_named_counts(sentence: str, importance: int) -> None:
    """O6, O7: who, what, where and when."""
    assert people_cues.chat_importance(sentence) == importance


@pytest.mark.parametrize(
    ("sentence", "least", "importance"),
    [
        ("Mostly carrots and leeks.", 2, 6),
        ("Mostly carrots.", 2, 6),
        ("It keeps me near the harbour.", 2, 0),
        ("It keeps me near the harbour.", 1, 6),
        ("Two years.", 2, 6),
    ],
)
def test_an_answer_needs_few_uncommon_words(sentence: str, least: int, importance: int) -> None:
    """XG10: a whole sentence needs `least`, a fragment one, an amount none."""
    assert people_cues.chat_importance(sentence, answers=least) == importance


@pytest.mark.parametrize(
    "sentence",
    [
        "That's so cool!",
        "You're an amazing cook!",
        "Sounds like fun",
        "Good luck with it!",
        "I totally agree.",
        "Way to go!",
    ],
)
def test_praise_and_sympathy_are_reactions(sentence: str) -> None:
    assert people_cues.is_reaction(sentence) or cues.is_courtesy(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "It was inspiring to see the old harbour and the boats that they had built there by hand.",
        "You can use rye flour instead of wheat.",
        "I'm so happy that I bought the boat.",
    ],
)
def test_a_sentence_with_a_fact_is_not_a_reaction(sentence: str) -> None:
    assert not people_cues.is_reaction(sentence)


RUNS = ("1,", "1 a-", " ", "-", "a ",
        "i ", "you ", "always ", "can you ", "when i ask ", "so ", "the ", "my a ", "now ", "i really ",
", ", ".",
        "it is ", "tests ", "(", "maybe ", "'", "ich ", "mai ", "我", "以后", "Here's ", "moving a ",
        "what a ")  # fmt: skip


@pytest.mark.parametrize("run", RUNS)
def test_no_cue_takes_the_square_of_a_sentence(run: str) -> None:
    """A transcript is untrusted: 30 kB of anything in one sentence are classified in a tenth of a second."""
    sentence = run * (30_000 // len(run)) + "!"
    began = time.process_time()
    people_cues.user_importance(sentence, people_cues.user_type(sentence))
    people_cues.user_importance(sentence, Type.FACT)
    agents.agent_type(sentence)
    agents.says_nothing(sentence)
    people_cues.chat_importance(sentence)
    cues.without_notes(sentence)
    cues.short_sentence(cues.without_opening(sentence, "Ada Lovelace"))
    people_cues.question_label(sentence, "Ada Lovelace")
    for ask in (
        people_cues.is_known_language,
        cues.is_yes,
        cues.is_no,
        people_cues.is_reaction,
        cues.is_preamble,
        cues.is_empty_question,
        cues.is_statement,
        cues.follows_on,
    ):
        ask(sentence)
    assert time.process_time() - began < 1


@pytest.mark.parametrize("sentence", [*STANDING, *PREFERENCES, *DECISIONS, *CORRECTIONS, *QUESTIONS, *REQUESTS])
def test_capitals_do_not_change_the_type(sentence: str) -> None:
    assert people_cues.user_type(sentence.upper()) is people_cues.user_type(sentence)
    assert cues.is_courtesy(sentence.upper()) is cues.is_courtesy(sentence)


@given(st.text(max_size=200))
def test_any_text_is_of_some_kind_or_none(text: str) -> None:
    assert people_cues.user_type(text) is None or isinstance(people_cues.user_type(text), Type)
    assert 0 <= people_cues.user_importance(text, people_cues.user_type(text)) <= 10
    assert 0 <= people_cues.chat_importance(text) <= 10


@pytest.mark.parametrize("sentence", ORDERS)
def test_an_order_is_not_a_fact(sentence: str) -> None:
    """Whatever its clauses say."""
    assert people_cues.user_type(sentence) in (None, Type.REQUEST)


@pytest.mark.parametrize("run", [".", " ", "。", ", ", "!thanks"])
@pytest.mark.parametrize("said", ["no", "yes", "不要", "never mind"])
def test_many_signs_after_a_bare_reply_take_linear_time(said: str, run: str) -> None:
    reply = said + run * 100_000 + "x"
    began = time.process_time()
    assert not cues.is_yes(reply)
    assert not cues.is_no(reply)
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    "reply", ["no.", "No, thanks!", "nope...", "no , ", "don't. Thank you.", "nothanks", "no thanks ."]
)
def test_a_bare_no_may_thank_and_have_signs(reply: str) -> None:
    assert cues.is_no(reply)


@pytest.mark.parametrize("reply", ["no thanks, ", "no thanks thanks", "no way", "nob"])
def test_a_no_with_more_words_is_not_a_bare_no(reply: str) -> None:
    assert not cues.is_no(reply)
