"""The options that name a model, and what becomes of a run whose model fails."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from omcli.cli.arguments import Declared, option
from omcli.cli.completion import provider_names
from omcli.cli.diagnostics import Ended
from omcli.memory.errors import OF_MODELS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omcli.cli.options import Run


def named_provider(role: str) -> Declared:
    """`--observer NAME` or `--reflector NAME`."""
    return option(
        f"--{role}",
        metavar="NAME",
        help="Who does it: anthropic, openai, ollama, …, or rules.",
        autocompletion=provider_names,
    )


def named_model() -> Declared:
    """`--model NAME`."""
    return option("--model", metavar="NAME", help="The model: NAME, or ollama/NAME, openrouter/NAME, …")


def named_url() -> Declared:
    """`--base-url URL`."""
    return option("--base-url", metavar="URL", help="Where the model is, if not at its provider's own address.")


def verified() -> Declared:
    """`--verify`."""
    return option("--verify", help="Leave out rows of a model that name what their messages don't.")


def as_words(*, observer: str | None, model: str | None, base_url: str | None, verify: bool) -> list[str]:
    """These options as they are given once more, to a worker."""
    said = {"--observer": observer, "--model": model, "--base-url": base_url}
    return [f"{name}={value}" for name, value in said.items() if value is not None] + ["--verify"] * verify


def best_effort() -> Declared:
    """`--best-effort`."""
    return option("--best-effort", help="A model that fails is a warning and no error.")


def say(
    run: Run, role: str, *, provider: str | None, model: str | None, base_url: str | None, verify: bool = False
) -> None:
    """Passes on to the settings what the options say of a role's model, and of what is believed of it."""
    run.say({f"{role}.provider": provider, f"{role}.model": model, f"{role}.base_url": base_url})
    run.say({"observe.verify": verify or None})


@contextmanager
def failing(run: Run, *, is_tolerant: bool) -> Iterator[None]:
    """Says what goes wrong with a model inside. Then the run ends, or goes on behind it where it `is_tolerant`.

    Raises Ended.
    """
    try:
        yield
    except OF_MODELS as error:
        if not is_tolerant:
            run.talk.error(error)
            raise Ended(error.exit_code) from None
        run.talk.warn_of(error)
