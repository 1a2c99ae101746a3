"""What is kept of conversations between people: what they tell, as a note-taker writes it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omcli.memory.observation import Type
from omcli.observers.rules import cues
from omcli.text.terms import NEGATION
from tests.batches import Talk


def _talk(*turns: str) -> Talk:
    """Messages of Ada and Bea, in turns, after a greeting of Bea."""
    talk = Talk().user("Hello!", name="Bea")
    for at, text in enumerate(turns):
        talk.user(text, name=("Ada", "Bea")[at % 2])
    return talk


@pytest.mark.parametrize(
    "said",
    [
        "Hey Bea! How's it going?",
        "[photo: two dogs on a sunny beach]",
        "Wow, Bea, your sourdough looks delicious!",
        "Aw, that's so sweet of you 🥰",
        "Haha, totally!",
        "Thanks, Bea! You always know how to cheer me up.",
        "I'm so proud of you for finishing the marathon, Bea!",
        "It was lovely. Time flies!",
        "Sunsets make everything better.",
        "I know your garden is lush and lovely.",
        "Gotta run, talk to you later!",
        "Let's keep supporting the fishermen!",
        "We'll never give up on our orchard!",
        "<Media omitted>",
    ],
)
def test_small_talk_captions_and_goodbyes_give_no_row(said: str) -> None:
    """XC11, XG10: a row costs room in every pack."""
    assert _talk(said).observed() == ()


@pytest.mark.parametrize(
    ("said", "row"),
    [
        ("Oh, I just signed up for a pottery class yesterday!", "signed up for pottery class yesterday"),
        ("Hey Bea! Guess what, I adopted a greyhound named Pixel.", "adopted greyhound named Pixel"),
        ("Well, my brother moved to Oslo in March, you know, for work.", "brother moved to Oslo in March, for work"),
        ("I wanted to tell you that we booked the cabin for 3 May.", "we booked cabin for 3 May"),
        ("I think the choir meets on Thursdays. We sing Bach.", "choir meets on Thursdays; We sing Bach"),
        ("We'll repaint the kitchen in autumn! [image: a wall]", "We'll repaint kitchen in autumn"),
        ("It was a violin recital at the town hall in Leeds.", "violin recital at town hall in Leeds"),
        ("I'm not really a baker, but I sold forty scones.", "not really a baker, but sold forty scones"),
        ("I wanted to let you know that I got an A in Greek.", "got A in Greek"),
        ("I swim at the quarry twice a week.", "swim at quarry twice a week"),
        ("We had such a storm at the lake.", "We had such a storm at lake"),
        ("I'm reading A Room with a View on the train.", "reading A Room with View on train"),
        ("I'm still allergic to shellfish!", "still allergic to shellfish"),
        ("Then let's do Sunday at the harbour instead.", "Then let's do Sunday at the harbour instead"),
        ("She left the orchestra in Oslo and I stayed.", "She left orchestra in Oslo and I stayed"),
        ("My daughter's The Hobbit poster fell down, so sad.", "daughter's The Hobbit poster fell down, so sad"),
    ],
)
def test_what_is_told_is_written_down_without_ballast(said: str, row: str) -> None:
    """XC11, XG10: words are left out, and none is changed."""
    (kept,) = _talk(said).texts()
    assert kept == f"Ada: {row}"


def test_a_conversation_becomes_a_third_of_its_length() -> None:
    """XC11: facts, plans, dates and names stay."""
    talk = _talk(
        "Hey Bea! It's been ages, how have you been? Hope everything is going well with you and the family!",
        "Hey Ada! So good to hear from you! I've been super busy lately, in a good way. I just started rowing on the "
        "canal on Tuesdays. It's honestly the best thing ever! What about you?",
        "Wow, that's amazing! I'm so happy for you! You always find the coolest things to do. How did you get into it?",
        "Thanks! My neighbour Olga talked me into it, and now I can't imagine life without it. It feels so good!",
        "Aw, that's so sweet! Having people like that around makes all the difference, doesn't it?",
        "Totally! It really does. Oh, guess what, we're going to the regatta in Ghent on 14 June! [photo: two boats]",
        "No way! That sounds incredible! You must be so excited! I can't wait to see the pictures!",
        "Thanks! I'm a little nervous to be honest, but it'll be fun. Anyway, I gotta go now. Talk to you soon!",
        "Good luck! You've got this! Take care and say hi to everyone from me. Bye!",
    )
    rows = "\n".join(talk.texts())
    assert 3 * len(rows) <= sum(len(kept.message.text) for kept in talk.kept)
    assert all(
        fact in rows for fact in ("rowing on canal on Tuesdays", "neighbour Olga", "regatta in Ghent on 14 June")
    )


@pytest.mark.parametrize(
    ("asked", "said", "row"),
    [
        ("What instrument do you play?", "Cello! Since school.", "Bea: instrument: Cello; Since school"),
        ("How long have you had the boat?", "Four years.", "Bea: boat: Four years"),
        ("Who plays at the jazz festival?", "Two bands.", "Bea: jazz festival: Two bands"),
        ("Did you call the dentist?", "No, I'll call on Monday.", "Bea: dentist: No, I'll call on Monday"),
        ("The ferry took a while, didn't it?", "Two hours.", "Bea: ferry: Two hours"),
        ("Is the piano old?", "The piano is from 1910.", "Bea: piano is from 1910"),
        ("Why the loom?", "My aunt wove rugs. It's so relaxing.", "Bea: loom: aunt wove rugs"),
        ("Any plans, Bea?", "We're visiting Lisbon in June.", "Bea: We're visiting Lisbon in June"),
    ],
)
def test_an_answer_names_what_it_is_about(asked: str, said: str, row: str) -> None:
    """XG10: topic and answer stand in one row."""
    assert _talk(asked, said).texts() == [row]


def test_a_pronoun_brings_the_sentence_before_it() -> None:
    """XG10: the row says what "it" is."""
    (row,) = _talk("Look at that vase. It came from my aunt in Granada in 1994.").texts()
    assert row == "Ada: Look at that vase; It came from aunt in Granada in 1994"


def test_a_person_who_goes_on_after_a_reaction_fills_one_row() -> None:
    """XG10: until it is long, and with the messages that it is from."""
    row = _talk("I joined a climbing club.", "Wow, amazing!", "We climb at the old quarry near Leeds.").one()
    assert row.text == "Ada: joined climbing club; We climb at old quarry near Leeds"
    assert row.sources == (2, 4)


@pytest.mark.parametrize(("more", "rows"), [(29, 1), (30, 2)])
def test_a_row_of_several_messages_has_less_than_sixty_words(more: int, rows: int) -> None:
    first, last = (" ".join(f"quarry{number}" for number in range(count)) for count in (30, more))
    assert len(_talk(f"Leeds {first[8:]}.", "Wow, amazing!", f"{last}.").texts()) == rows


def test_a_person_who_goes_on_much_later_begins_a_row() -> None:
    """A row is about one matter."""
    reactions = ("Wow, amazing!", "Thanks!", "Great!", "Totally!", "How nice!")
    assert len(_talk("I joined a climbing club.", *reactions[:3], "We climb at the quarry near Leeds.").texts()) == 1
    assert len(_talk("I joined a climbing club.", *reactions, "We climb at the quarry near Leeds.").texts()) == 2


def test_who_writes_again_another_day_begins_a_row() -> None:
    """A row has one date."""
    talk = _talk("I joined a climbing club.", "Wow, amazing!", "We climb at the old quarry near Leeds.")
    last = talk.kept[-1]
    talk.kept[-1] = replace(last, message=replace(last.message, at="2026-03-05T09:00:00.000Z"))
    assert talk.texts() == ["Ada: joined climbing club", "Ada: We climb at old quarry near Leeds"]


def test_what_the_other_tells_ends_a_row() -> None:
    rows = _talk("I joined a climbing club.", "I bought a kayak.", "We climb at the old quarry near Leeds.").texts()
    assert len(rows) == 3


def test_two_dates_stay_in_two_rows() -> None:
    """Each row refers to its own date."""
    talk = _talk("Yesterday I joined a climbing club.", "Nice!", "Tomorrow we climb at the old quarry.")
    assert len({row.refers_to for row in talk.observed()}) == 2


@pytest.mark.parametrize(
    "said",
    ["I prefer the aisle seat, because my knees hurt on the plane", "We've decided on the oak table for my desk"],
)
def test_preferences_and_decisions_between_people_keep_their_wording(said: str) -> None:
    """Only what opens them goes."""
    row = _talk(f"Oh, {said}!").one()
    assert row.text == f"Ada: {said}"
    assert row.type in (Type.PREFERENCE, Type.DECISION)


@pytest.mark.parametrize(
    "said",
    [
        "Mein Bruder zieht im Mai nach Leipzig und arbeitet dort als Bäcker.",
        "Mi hermana se mudó a Valencia y abrió una panadería.",
        "Ma cousine vend des fromages au marché de Lyon.",
        "我上周搬到上海了，在一家面包店工作。",
    ],
)
def test_a_conversation_in_another_language_keeps_its_sentences(said: str) -> None:
    """S1.20: the words to leave out are English."""
    (row,) = _talk(said).texts()
    assert row == f"Ada: {said.rstrip('.')}"


_WORDS = st.sampled_from(
    "I I'm I've it's It was is the The my our really just very not never no don't isn't can't and but because when she "
    "they that there where baker Oslo seven cello, quarry. you know, Ada, hey! wow, so".split()
)


@given(st.lists(_WORDS, min_size=1, max_size=25).map(" ".join))
def test_words_of_a_short_sentence_are_those_said_and_no_negation_is_lost(said: str) -> None:
    """XG10: only words are dropped. A dropped "not" would say the opposite."""
    short = cues.short_sentence(cues.without_opening(said, "Ada"))
    spoken = iter(re.findall(r"[\w']+", said))
    assert all(word in spoken for word in re.findall(r"[\w']+", short))

    def negations(text: str) -> list[str]:
        return [word for word in re.findall(r"[\w']+", text) if NEGATION.match(word)]

    assert negations(short) == negations(said)
