"""A durable memory for LLM agents."""

TYPE_CHECKING = False  # not from `typing`, which is slow to import: every `om` begins here

if TYPE_CHECKING:
    from omcli.base.errors import (
        BadConfiguration,
        BadInput,
        BadUsage,
        CannotCreate,
        InputOutput,
        NoInput,
        NotAllowed,
        OmError,
        ProviderFailed,
        TryAgain,
        UnusableStore,
    )
    from omcli.compressor import Context, ContextCompressor, Stats, Worked
    from omcli.memory.message import Message, Role
    from omcli.memory.observation import Observation
    from omcli.operations.ingest.window import Ingested
    from omcli.operations.recall import RecallResult

__version__ = "0.1.0"
__all__ = [
    "BadConfiguration", "BadInput", "BadUsage", "CannotCreate", "Context", "ContextCompressor", "Ingested",
    "InputOutput", "Message", "NoInput", "NotAllowed", "Observation", "OmError", "ProviderFailed", "RecallResult",
    "Role", "Stats", "TryAgain", "UnusableStore", "Worked",
]  # fmt: skip


if not TYPE_CHECKING:  # type checkers see the imports above
    _ELSEWHERE = {
        "Message": "omcli.memory.message",
        "Role": "omcli.memory.message",
        "Observation": "omcli.memory.observation",
        "ContextCompressor": "omcli.compressor",
        "Context": "omcli.compressor",
        "Stats": "omcli.compressor",
        "Worked": "omcli.compressor",
        "Ingested": "omcli.operations.ingest.window",
        "RecallResult": "omcli.operations.recall",
    }  # fmt: skip

    def __getattr__(name: str) -> object:
        """Import an exported name when it is first used: every `om` begins by importing this module."""
        if name not in __all__:
            raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
        from importlib import import_module  # noqa: PLC0415

        value = getattr(import_module(_ELSEWHERE.get(name, "omcli.base.errors")), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
