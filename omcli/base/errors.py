"""Errors with a one-line explanation for the user, and their exit codes.

    OmError                  70  (never raised itself)
    ├── BadUsage              2
    ├── BadInput             65
    │   ├── UnknownFormat    65
    │   ├── UnknownId        65
    │   └── NotUndoable      65
    ├── NoInput              66
    │   └── UnknownSession   66
    ├── CannotCreate         73
    ├── InputOutput          74
    │   ├── CannotWrite      74
    │   ├── StoreDamaged     74
    │   └── IndexDamaged     74
    ├── TryAgain             75
    │   ├── StoreLocked      75
    │   ├── SessionTaken     75
    │   ├── LaneTaken        75
    │   └── StaleBatch       75
    ├── ProviderFailed       69
    │   ├── Unreachable      69
    │   ├── NotAModel        69
    │   ├── PromptTooLong    69
    │   ├── CutOff           69
    │   │   └── Looped       69
    │   ├── Refused          69
    │   ├── Unusable         69
    │   ├── OverLimit        69
    │   └── Waiting          69
    ├── NotAllowed           77
    ├── NoKey                77
    │   └── BadKey           77
    ├── BadConfiguration     78
    │   └── UnknownModel     78
    ├── UnusableStore        78
    │   └── NewerStore       78
    └── MigrationFailed      70

Exit codes from 65 on are from BSD's sysexits.h. `om` also exits with 130 (SIGINT) and 141 (SIGPIPE).
"""

from __future__ import annotations

from typing import ClassVar


class OmError(Exception):
    """A failure that is explained to the user in one line.

    `slug` names the error in JSON output and in the manual. `hint` suggests a remedy.
    """

    slug: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 70

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class BadUsage(OmError):
    """The command line asks for something impossible."""

    slug = "usage"
    exit_code = 2


class BadInput(OmError):
    """The input is not valid."""

    slug = "bad-input"
    exit_code = 65


class UnknownFormat(BadInput):
    """The input is not a transcript of any known format."""

    slug = "unknown-format"


class UnknownId(BadInput):
    """An id matches nothing, or it is ambiguous."""

    slug = "unknown-id"


class NotUndoable(BadInput):
    """An operation cannot be undone (for example, because a later one depends on it), there is nothing to undo, or an
    earlier state cannot be restored for `om replay`.
    """

    slug = "not-undoable"


class NoInput(OmError):
    """The input does not exist or cannot be read."""

    slug = "no-input"
    exit_code = 66


class UnknownSession(NoInput):
    """A session is not in the store, or several ids begin with the given one."""

    slug = "unknown-session"


class CannotCreate(OmError):
    """A file, folder or entry of a scheduler cannot be created or changed."""

    slug = "cannot-create"
    exit_code = 73


class InputOutput(OmError):
    """Reading or writing failed, for example because the disk is full, faulty or read-only."""

    slug = "input-output"
    exit_code = 74


class CannotWrite(InputOutput):
    """The store's disk is full or faulty."""


class StoreDamaged(InputOutput):
    """The store is damaged. Its last backup can take its place."""


class IndexDamaged(InputOutput):
    """The index of words is damaged. It can be rebuilt from messages and rows."""

    slug = "index-damaged"


class TryAgain(OmError):
    """Another process was faster or is still working, or om had to mend its store first. Nothing was lost."""

    slug = "try-again"
    exit_code = 75


class StoreLocked(TryAgain):
    """Another process held the store's write lock for longer than the timeout."""

    slug = "store-locked"


class SessionTaken(TryAgain):
    """Another process started a session with the same id but other messages."""

    slug = "session-taken"


class LaneTaken(TryAgain):
    """Another process holds the lease on this session's lane."""

    slug = "lane-taken"


class StaleBatch(TryAgain):
    """The messages or rows that were read changed before the result was recorded."""

    slug = "stale-batch"


class ProviderFailed(OmError):
    """A model gave no usable reply. The messages or rows it was given are left for the next run."""

    slug = "provider-failed"
    exit_code = 69


class Unreachable(ProviderFailed):
    """The endpoint could not be reached, did not reply in time, or is out of order."""

    slug = "unreachable"


class NotAModel(ProviderFailed):
    """The address answers, but is not a model endpoint."""

    slug = "not-a-model"


class PromptTooLong(ProviderFailed):
    """The prompt exceeds the model's context."""

    slug = "prompt-too-long"


class CutOff(ProviderFailed):
    """The reply ended before it was complete."""

    slug = "cut-off"


class Looped(CutOff):
    """The reply repeated itself until it was cut off."""

    slug = "looped"


class Refused(ProviderFailed):
    """The model or a content filter declined."""

    slug = "refused"


class Unusable(ProviderFailed):
    """The reply is empty, does not have the requested form, or fails the checks."""

    slug = "unusable-reply"


class OverLimit(ProviderFailed):
    """A limit on the tokens or cost of models is reached, so the request was not sent."""

    slug = "over-limit"


class Waiting(ProviderFailed):
    """The model failed before, and is not asked again yet."""

    slug = "waiting"


class NotAllowed(OmError):
    """The API key is missing, or the endpoint does not accept it."""

    slug = "not-allowed"
    exit_code = 77


class NoKey(OmError):
    """The key of an encrypted store is missing, or it cannot be read or kept."""

    slug = "no-key"
    exit_code = 77

    def __init__(self, message: str, *, hint: str = "", name: str = "") -> None:
        super().__init__(message, hint=hint)
        self.name = name
        """Name of the missing key."""


class BadKey(NoKey):
    """A key was found, but it is not valid, or not the store's key."""

    slug = "bad-key"


class BadConfiguration(OmError):
    """A setting is not valid, or something that it needs is missing."""

    slug = "bad-configuration"
    exit_code = 78


class UnknownModel(BadConfiguration):
    """The endpoint has no model with this name."""

    slug = "unknown-model"


class UnusableStore(OmError):
    """The file is not a store, or this program cannot use it."""

    slug = "unusable-store"
    exit_code = 78


class NewerStore(UnusableStore):
    """The store was written by a later version of `om`."""

    slug = "newer-store"


class MigrationFailed(OmError):
    """The store could not be migrated to the schema of this version of `om`. It is unchanged."""

    slug = "migration-failed"


OF_MODELS = (ProviderFailed, NotAllowed, BadConfiguration)
"""Errors caused by a model or its configuration. Its input is kept for a later run or handled by rules."""
OF_REPLIES = (CutOff, Refused, Unusable)
"""Errors in a single reply. The next reply may be usable."""
OF_MATERIAL = (*OF_REPLIES, PromptTooLong)
"""Errors of a model with one particular input. Other input may work."""
PASSING = (TryAgain, CannotWrite)
"""Errors of a store that may take the same input later."""
ELSEWHERE = (LaneTaken, StaleBatch)
"""Errors raised because another process is doing the work, or has done it."""
OF_ONE_SESSION = (*OF_MATERIAL, Waiting, *ELSEWHERE)
"""Errors that leave other sessions unaffected."""
