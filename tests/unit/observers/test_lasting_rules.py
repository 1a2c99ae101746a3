"""Sentences that are lasting rules, and sentences that only ask for one thing or report one."""

from __future__ import annotations

import time

import pytest

from omcli.memory.observation import Type
from omcli.observers.rules import people_cues

STANDING = (
    # said as such
    "Always run the formatter before you commit.",
    "Never commit straight to main.",
    "From now on, write the dates as day and month.",
    "From here on out we squash before merging, please.",
    "Going forward, put each migration into a file of its own.",
    "In future please name the branch after the ticket.",
    "In the future, ask before you install anything.",
    "As a rule, keep functions under forty lines.",
    "By default, answer in Dutch.",
    "Don't ever delete a migration.",
    "Do not ever print the token.",
    "Under no circumstances touch the production bucket.",
    "You should always quote paths with spaces.",
    "You must never log a password.",
    "I want you to always show the diff first.",
    "Please never use emojis in commit messages.",
    "and please always explain why a test was skipped",
    "Remember to update the changelog.",
    "Remember that we deploy from the release branch.",
    # on every occasion
    "Every time you add an endpoint, document it.",
    "Each time I paste a stack trace, tell me the first frame of ours.",
    "Whenever you rename a file, fix the imports too.",
    "Whenever the schema changes, regenerate the client.",
    "Before each commit, run the linter.",
    "After every change run the unit tests.",
    "Run the tests after every change.",
    "Run the type checker every time you touch the models.",
    "When you write SQL, use upper case for the keywords.",
    "When writing tests, avoid sleeping.",
    "If you are not sure, ask me first.",
    "If I ask for a summary, give me three bullet points.",
    "Until I say otherwise, work on the staging copy.",
    "Unless I tell you otherwise, keep the public names.",
    # on all of a kind
    "Use British spelling in all replies.",
    "All new files need a licence header.",
    "Every commit message has to begin with the ticket number.",
    "Every function you write needs a docstring.",
    "No commits without a test.",
    "All answers must be in plain English.",
    "Keep all your answers under two hundred words.",
    # not without asking
    "Ask me before you delete anything.",
    "Check with me before pushing.",
    "Don't push without asking me first.",
    "Never merge without my approval.",
    # asked for politely
    "Can you please always add the units to the numbers?",
    "Could you from now on leave the lock file alone?",
    # in other languages
    "Schreib Commits ab jetzt immer auf Englisch.",
    "Bitte niemals direkt auf main pushen.",
    "Frag mich in Zukunft, bevor du etwas löschst.",
    "Réponds toujours en français.",
    "Ne touche jamais à la base de production.",
    "Désormais, utilise des tabulations.",
    "Siempre ejecuta las pruebas antes de subir cambios.",
    "Nunca borres las migraciones.",
    "A partir de ahora escribe los mensajes en español.",
    "Responda sempre em português.",
    "Nunca apague as migrações.",
    "D'ora in poi usa i nomi lunghi.",
    "Rispondi sempre in italiano.",
    "Всегда запускай тесты перед коммитом.",
    "Никогда не трогай рабочую базу.",
    "以后提交之前请先运行测试。",
    "永远不要直接推送到主分支。",
    "今後はコミットの前に必ずテストを実行してください。",
    "앞으로 커밋하기 전에 항상 테스트를 돌려 주세요.",
)
ONCE = (
    # asks for one thing, with the words of a rule in it
    "Change the parser to always close the file.",
    "Fix the loop so that it will never hang.",
    "Update the banner so you always see the total.",
    "Add a check so it should never return null.",
    "Make the footer always stick to the bottom.",
    "Refactor the client to never retry on a 404.",
    "Add a setting to always show the seconds.",
    "Write a test that makes sure the cache never grows.",
    "Rename it to `always_on` and run the tests.",
    "Add a note about what we might do in the future.",
    "Leave a TODO to handle leap seconds in the future.",
    "Set the flag to true by default, then run it again.",
    "Make it off by default, with a switch in the settings.",
    "Before moving forward, fix the failing test.",
    "Let's fix this one before going forward.",
    "Add it as a rule to the linter.",
    "Write a job that mails me whenever you detect an outage.",
    "Write a hook that runs every time you save a file.",
    "Implement the retry: whenever you get a 503, wait for a second.",
    "Make a list of every file that mentions tides.",
    "Run all tests and tell me which of them fail.",
    "Before you go on, show me the plan.",
    "After that change, run the tests once.",
    "If you find the cause, fix it.",
    "When you are done, commit and push.",
    "When the build is green, merge it.",
    "Each chart should have a legend of its own.",
    "Every page needs a way back to the map.",
    "Don't commit this yet.",
    "Ask me again when it is done.",
    # complaints and statements
    "It crashes every time you click on save.",
    "The page flickers whenever you scroll.",
    "Whenever you open the menu, it flickers.",
    "It always returns null, please fix it.",
    "The importer always takes ages and I want it faster.",
    "The job never finishes.",
    "This should never happen, where does it come from.",
    "I always wanted to try that.",
    "I remember that the config was in the other folder.",
    "We never had this problem before.",
    "You always forget the semicolon.",
    "I never asked for a new table.",
    "He will always be my favourite singer.",
    "In the future we might move to another host.",
    "That will be a problem in the future.",
    "My sister and I always went to the lake.",
    "Things are looking good going forward.",
    # questions
    "Does it always sort them?",
    "Should we never retry?",
    "Do you remember that bug with the tides?",
    "Why does it fail every time you run it?",
    "Will this break in the future?",
    "Can you check why it would never end?",
    "Can you make the header always visible?",
    "Can you fix the crash that comes whenever you scroll?",
    # in other languages
    "Das schlägt immer fehl.",
    "Es stürzt jedes Mal ab, bitte beheben.",
    "Ich wollte schon immer ein Boot.",
    "Ça plante toujours au démarrage.",
    "Je n'ai jamais vu cette erreur.",
    "La página siempre falla al cargar.",
    "Nunca funcionó en mi máquina.",
    "O teste sempre falha aqui.",
    "Il test fallisce sempre.",
    "Тест всегда падает.",
    "Я никогда не видел эту ошибку.",
    "这个测试总是失败。",
    "テストがいつも失敗します。",
    "테스트가 항상 실패해요.",
    "Teile das Modul in zwei auf.",
    "Ajoute un test pour le calendrier.",
)


def is_a_rule(sentence: str) -> bool:
    return people_cues.user_type(sentence) is Type.INSTRUCTION and people_cues.is_lasting_rule(sentence)


@pytest.mark.parametrize("sentence", STANDING)
def test_what_holds_from_now_on_is_a_lasting_rule(sentence: str) -> None:
    """S0.24, S1.20: however it is worded."""
    assert is_a_rule(sentence)
    assert people_cues.user_importance(sentence, Type.INSTRUCTION) == 9


@pytest.mark.parametrize("sentence", ONCE)
def test_a_single_request_or_report_in_the_same_words_is_not_a_rule(sentence: str) -> None:
    """S0.24, O3: a rule that was none would go on to the next sessions."""
    assert not is_a_rule(sentence)


@pytest.mark.parametrize(
    "run",
    ["always ", "never, ", "in the future ", "whenever you ", "; before each ", "so the and ", "siempre ", "以后"],
)
def test_long_sentences_take_linear_time(run: str) -> None:
    long = run * (200_000 // len(run))
    began = time.process_time()
    people_cues.is_lasting_rule(long)
    assert time.process_time() - began < 2
