"""The options that name a model, and what becomes of a run whose model fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omcli.cli.arguments import Declared, option
from omcli.cli.completion import provider_names
from omcli.cli.diagnostics import Ended
from omcli.memory.errors import BadConfiguration, NotAllowed, OmError, ProviderFailed

if TYPE_CHECKING:
    from omcli.cli.options import Run
    from omcli.operations.workshop import Workshop

OF_MODELS: tuple[type[OmError], ...] = (ProviderFailed, NotAllowed, BadConfiguration)
"""What goes wrong with a model, and not with what it is given."""


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


def best_effort() -> Declared:
    """`--best-effort`."""
    return option("--best-effort", help="A model that fails is a warning and no error.")


def say(run: Run, role: str, *, provider: str | None, model: str | None, base_url: str | None) -> None:
    """Passes on to the settings what the options say of a role's model."""
    run.say({f"{role}.provider": provider, f"{role}.model": model, f"{role}.base_url": base_url})


def observing(run: Run, workshop: Workshop, *, is_tolerant: bool) -> tuple[Workshop, OmError | None]:
    """What observes with the model that was asked for. Where that can't be had, it is said at once, before any work:
    messages are kept then, and wait; the error is what the run is to end with, or None where it `is_tolerant`."""
    from omcli.memory.record import replace

    try:
        return run.wiring.observing(workshop), None
    except OF_MODELS as error:
        tell(run, error, is_tolerant=is_tolerant)
        return replace(workshop, observer=None), None if is_tolerant else error


def tell(run: Run, error: OmError, *, about: str = "", is_tolerant: bool) -> None:
    """Says that a model failed: as an error, or as a warning."""
    if is_tolerant:
        run.talk.warn(f"{f'{about}: ' if about else ''}{error.message}")
    else:
        run.talk.error(error, about=about)


def end(error: OmError | None) -> None:
    """Ends the run with the code of an error that was told already. Raises Ended."""
    if error is not None:
        raise Ended(error.exit_code)
