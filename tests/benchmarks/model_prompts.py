"""Whether what a model is asked grows with the transcript, and no faster.

Run as `python -m tests.benchmarks.model_prompts [MESSAGES]`. A conversation is observed as `om observe` does it where
nothing is configured but a model, which answers with as many rows as it is asked for; printed are the tokens of all its
prompts, schemas included, over those of the transcript, for work of an agent and for talk in short messages, at several
lengths up to the whole. Nothing is sent anywhere. Ends with 1 where a ratio is above 1.6.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from omcli.base.record import replace
from omcli.llm.model import EndReason, Prompt, Reply
from omcli.memory.message import Incoming, Message, Role, TokenCounter, digest
from omcli.memory.session import Session
from omcli.observers.model import ModelObserver
from omcli.operations.observe.session import observe_session
from omcli.settings import resolve
from omcli.wiring import Wiring

_AIM = 1.6
_SESSION = "talk"
_NOW = "2026-03-02T20:00:00.000Z"
_WORDS = """
    parser retry session token cache index build query worker schema border invoice harbour ticket lamp garden window
    train recipe violin market bridge letter summer kitchen the a of in on to with from and is was has will can should
    reads writes fails keeps opens drops moves asks finds holds changes quickly again today never always before after
""".split()


@dataclass(slots=True)
class _Asked:
    """A model that answers every prompt with rows about the messages it is shown, and adds up what it was asked."""

    counter: TokenCounter
    tokens: int = 0
    calls: int = 0
    name: str = "benchmark"
    model: str = "benchmark"
    takes_images: bool = False
    chosen: random.Random = field(default_factory=lambda: random.Random(7))

    def ask(self, prompt: Prompt) -> Reply:
        shown = "".join(part for part in prompt.content if isinstance(part, str))
        self.tokens += sum(map(self.counter.text, (prompt.system, shown, json.dumps(prompt.schema))))
        self.calls += 1
        # Not those that are marked as said before, which rows may not be about.
        labels = re.findall(r"^(m[0-9]+) [-0-9: ]*(?:user|assistant): (.*)", shown, re.MULTILINE)
        rows = [
            {"text": f"Said: {text[:160]}", "priority": "medium", "kind": "fact", "sources": [label]}
            for label, text in labels[::4]
        ]
        answer = {"observations": rows, "used": [], "current_task": None, "next_step": None, "title": None}
        return Reply(text=json.dumps(answer), stop=EndReason.END, model=self.model)


def main(arguments: list[str]) -> int:
    """Prints a line per kind of conversation and length."""
    messages = int(arguments[0]) if arguments else 20_000
    worst = 0.0
    print(f"{'conversation':14} {'messages':>8} {'transcript':>11} {'prompts':>11} {'calls':>6} {'ratio':>6}")
    for name, talk in {"agent at work": _work, "short talk": _talk}.items():
        for length in (messages // 10, messages // 4, messages // 2, messages):
            with TemporaryDirectory(prefix="om-bench-") as folder:
                transcript, model = _observed(Path(folder), list(talk(length)))
            worst = max(worst, ratio := model.tokens / transcript)
            print(f"{name:14} {length:8,} {transcript:11,} {model.tokens:11,} {model.calls:6} {ratio:6.2f}", flush=True)
    return 0 if worst <= _AIM else 1


def _observed(folder: Path, messages: list[Message]) -> tuple[int, _Asked]:
    """Observes a conversation to its end; the tokens of its messages, and the model that was asked."""
    (folder / "replies.json").write_text('"echo"')
    (folder / "config.toml").touch()
    said = {"db": folder / "om.db", "observer.model": f"scripted/{folder / 'replies.json'}"}
    wiring = Wiring(resolve(said, {}, config=folder / "config.toml"), now=_NOW)
    counts = wiring.counter(None)
    asked = _Asked(counts)
    found = wiring.observer(counts)
    assert isinstance(found.model, ModelObserver)
    deps = wiring.deps(counts, observer=replace(found, model=replace(found.model, provider=asked)))
    tokens = [counts.message(message) for message in messages]
    incoming = [
        Incoming(message=message, identity=digest(str(number)), key=f"{number:012x}", tokens=tokens[number])
        for number, message in enumerate(messages)
    ]
    deps.store.messages.append(
        Session(id=_SESSION, agent="made", cwd="/src/app"), incoming, counter=counts.name, now=_NOW
    )
    for _ in observe_session(_SESSION, deps):
        pass
    wiring.close()
    return sum(tokens), asked


def _work(length: int) -> Iterator[Message]:
    """An agent's turns: a prompt, two calls with their results, an answer."""
    chosen = random.Random(1)
    for number in range(length):
        turn, step = divmod(number, 6)
        at = _at(number)
        if step in (1, 3):
            path = f"src/{chosen.choice(_WORDS)}/{chosen.choice(_WORDS)}.py"
            text = json.dumps({"command": f"pytest -q {path}"} if step == 1 else {"file_path": path})
            tool = "Bash" if step == 1 else "Read"
            yield Message(role=Role.CALL, text=text, tool=tool, call_id=f"call-{turn}-{step}", at=at)
        elif step in (2, 4):
            text = "\n".join(_sentence(chosen, 12) for _ in range(chosen.randint(2, 20)))
            call_id = f"call-{turn}-{step - 1}"
            yield Message(role=Role.RESULT, text=text, call_id=call_id, at=at, failed=False)
        else:
            role = Role.USER if step == 0 else Role.ASSISTANT
            yield Message(role=role, text=_said(chosen, 20 if step == 0 else 80), at=at)


def _talk(length: int) -> Iterator[Message]:
    """Two who speak in turns, a sentence or two each."""
    chosen = random.Random(2)
    for number in range(length):
        role = Role.ASSISTANT if number % 2 else Role.USER
        yield Message(role=role, text=_said(chosen, chosen.randint(8, 40)), at=_at(number))


def _said(chosen: random.Random, words: int) -> str:
    return " ".join(_sentence(chosen, min(10, words)) for _ in range(max(1, words // 10)))


def _sentence(chosen: random.Random, words: int) -> str:
    return f"{' '.join(chosen.choices(_WORDS, k=words)).capitalize()}."


def _at(number: int) -> str:
    day, minute = divmod(number, 600)
    return f"2026-{1 + day // 28 % 12:02}-{1 + day % 28:02}T{8 + minute // 60:02}:{minute % 60:02}:00.000Z"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
