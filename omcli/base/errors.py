"""Everything that can go wrong and be said in one line, with the exit code each failure has.

    OmError                  70  the root; only its children are raised
    ├── BadUsage              2  the command line asks for something impossible
    ├── BadInput             65  the input is not what it should be
    │   ├── UnknownFormat    65  no reader recognises the input
    │   ├── UnknownId        65  an id names nothing, or more than one thing
    │   └── NotUndoable      65  an operation that cannot be taken back, or none that could be
    ├── NoInput              66  there is no such input, or it cannot be read
    ├── CannotCreate         73  a file or folder cannot be made
    ├── InputOutput          74  the disk refused: full, failing, read-only
    ├── TryAgain             75  somebody else was quicker or still is at it
    │   ├── StoreLocked      75  another process holds the write lock
    │   ├── SessionTaken     75  another process began a session under this name, with other messages
    │   ├── LaneTaken        75  another process is observing this session
    │   └── StaleBatch       75  the cursor moved since the batch was read
    ├── ProviderFailed       69  a model gave no reply that can be used
    │   ├── Unreachable      69  no connection, no answer in time, or the endpoint is out of order
    │   ├── NotAModel        69  something answered, but no model endpoint
    │   ├── PromptTooLong    69  more was asked than the model can read at once
    │   ├── CutOff           69  the reply ended before it was complete
    │   │   └── Looped       69  the reply repeated itself until it was cut off
    │   ├── Refused          69  the model, or a filter before it, declined
    │   ├── Unusable         69  the reply is not what was asked for
    │   └── OverLimit        69  a limit on what models may cost would be passed; nothing was asked
    ├── NotAllowed           77  no key, or one that the endpoint does not accept
    ├── BadConfiguration     78  a setting or the store itself does not fit this program
    │   ├── UnknownModel     78  the endpoint has no model of this name
    │   └── NewerStore       78  the store was written by a later version of om
    └── MigrationFailed      70  the store could not be brought to the schema of this version of om

The numbers are those of BSD's sysexits.h; `om` adds 130 (SIGINT) and 141 (SIGPIPE).
"""

from __future__ import annotations

from typing import ClassVar


class OmError(Exception):
    """A failure that is explained to the user in one line.

    `slug` names it in JSON output and in the manual, `exit_code` is what the process ends with, `hint` says what to
    try.
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
    """The input is not what it should be."""

    slug = "bad-input"
    exit_code = 65


class UnknownFormat(BadInput):
    """No reader recognises the input as a transcript."""

    slug = "unknown-format"


class UnknownId(BadInput):
    """An id names nothing, or more than one thing."""

    slug = "unknown-id"


class NotUndoable(BadInput):
    """An operation cannot be taken back: it was already, its rows are gone for good, or a later one stands on it."""

    slug = "not-undoable"


class NoInput(OmError):
    """There is no such input, or it cannot be read."""

    slug = "no-input"
    exit_code = 66


class CannotCreate(OmError):
    """A file or folder cannot be made."""

    slug = "cannot-create"
    exit_code = 73


class InputOutput(OmError):
    """The disk refused: full, failing or read-only."""

    slug = "input-output"
    exit_code = 74


class TryAgain(OmError):
    """Somebody else was quicker, or still is at it; nothing was lost."""

    slug = "try-again"
    exit_code = 75


class StoreLocked(TryAgain):
    """Another process held the store's write lock for longer than we were told to wait."""

    slug = "store-locked"


class SessionTaken(TryAgain):
    """Another process began a session under the name we chose for ours, with other messages."""

    slug = "session-taken"


class LaneTaken(TryAgain):
    """Another process holds the lease on this session's lane."""

    slug = "lane-taken"


class StaleBatch(TryAgain):
    """The cursor moved between reading a batch and recording what it gave."""

    slug = "stale-batch"


class ProviderFailed(OmError):
    """A model gave no reply that can be used; what was to be worked on waits for the next run."""

    slug = "provider-failed"
    exit_code = 69


class Unreachable(ProviderFailed):
    """No connection, no answer in time, or the endpoint is out of order."""

    slug = "unreachable"


class NotAModel(ProviderFailed):
    """Something answered where a model was expected, but no model endpoint."""

    slug = "not-a-model"


class PromptTooLong(ProviderFailed):
    """More was asked than the model can read at once."""

    slug = "prompt-too-long"


class CutOff(ProviderFailed):
    """The reply ended before it was complete."""

    slug = "cut-off"


class Looped(CutOff):
    """The reply repeated itself until it was cut off."""

    slug = "looped"


class Refused(ProviderFailed):
    """The model, or a filter before it, declined."""

    slug = "refused"


class Unusable(ProviderFailed):
    """The reply is not what was asked for."""

    slug = "unusable-reply"


class OverLimit(ProviderFailed):
    """A limit on what models may cost would be passed; nothing was asked."""

    slug = "over-limit"


class NotAllowed(OmError):
    """There is no key, or one that the endpoint does not accept."""

    slug = "not-allowed"
    exit_code = 77


class BadConfiguration(OmError):
    """A setting, or the store itself, does not fit this program."""

    slug = "bad-configuration"
    exit_code = 78


class UnknownModel(BadConfiguration):
    """The endpoint has no model of this name."""

    slug = "unknown-model"


class NewerStore(BadConfiguration):
    """The store was written by a later version of `om`."""

    slug = "newer-store"


class MigrationFailed(OmError):
    """The store could not be brought to the schema of this version of `om`; it is as it was."""

    slug = "migration-failed"


OF_MODELS = (ProviderFailed, NotAllowed, BadConfiguration)
"""What goes wrong with a model, and not with what it is given: work waits, or somebody else does it."""
OF_REPLIES = (CutOff, Refused, Unusable)
"""What is wrong with a reply, and not with the way to the model: the next one may do."""
OF_MATERIAL = (*OF_REPLIES, PromptTooLong)
"""What a model fails at since it was given this material: with other material it may not."""
ELSEWHERE = (LaneTaken, StaleBatch)
"""Somebody else does it, or has done it."""
OF_ONE_SESSION = (*OF_MATERIAL, *ELSEWHERE)
"""What keeps no other session from being worked on."""
