"""Errors with a one-line explanation for the user, and their exit codes.

    OmError                  70  the root; only its children are raised
    ├── BadUsage              2  the command line asks for something impossible
    ├── BadInput             65  the input is not valid
    │   ├── UnknownFormat    65  the input is not a transcript of any known format
    │   ├── UnknownId        65  an id matches nothing, or more than one thing
    │   └── NotUndoable      65  an operation that cannot be undone
    ├── NoInput              66  the input does not exist, or cannot be read
    ├── CannotCreate         73  a file or folder cannot be created
    ├── InputOutput          74  the disk failed: full, failing, read-only
    ├── TryAgain             75  another process was faster, or is still working
    │   ├── StoreLocked      75  another process holds the write lock
    │   ├── SessionTaken     75  another process started a session under this name, with other messages
    │   ├── LaneTaken        75  another process is observing this session
    │   └── StaleBatch       75  the cursor moved since the batch was read
    ├── ProviderFailed       69  a model gave no usable reply
    │   ├── Unreachable      69  no connection, no reply in time, or an endpoint out of order
    │   ├── NotAModel        69  the address answers, but is not a model endpoint
    │   ├── PromptTooLong    69  the prompt exceeds the model's context
    │   ├── CutOff           69  the reply ended before it was complete
    │   │   └── Looped       69  the reply repeated itself until it was cut off
    │   ├── Refused          69  the model, or a filter, declined
    │   ├── Unusable         69  the reply does not have the requested form
    │   └── OverLimit        69  a limit on model costs would be exceeded; nothing was sent
    ├── NotAllowed           77  the key is missing, or not accepted by the endpoint
    ├── BadConfiguration     78  a setting or the store itself does not fit this program
    │   ├── UnknownModel     78  the endpoint has no model with this name
    │   └── NewerStore       78  the store was written by a later version of om
    └── MigrationFailed      70  the store could not be migrated to the schema of this version of om

The numbers are those of BSD's sysexits.h; `om` adds 130 (SIGINT) and 141 (SIGPIPE).
"""

from __future__ import annotations

from typing import ClassVar


class OmError(Exception):
    """A failure that is explained to the user in one line.

    `slug` is its name in JSON output and in the manual, `exit_code` that of the process; `hint` suggests a remedy.
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
    """An id matches nothing, or more than one thing."""

    slug = "unknown-id"


class NotUndoable(BadInput):
    """An operation cannot be undone: it was undone already, its rows are deleted, or a later one depends on it."""

    slug = "not-undoable"


class NoInput(OmError):
    """The input does not exist, or cannot be read."""

    slug = "no-input"
    exit_code = 66


class CannotCreate(OmError):
    """A file or folder cannot be created."""

    slug = "cannot-create"
    exit_code = 73


class InputOutput(OmError):
    """The disk failed: full, failing or read-only."""

    slug = "input-output"
    exit_code = 74


class TryAgain(OmError):
    """Another process was faster, or is still working; nothing was lost."""

    slug = "try-again"
    exit_code = 75


class StoreLocked(TryAgain):
    """Another process held the store's write lock for longer than the timeout."""

    slug = "store-locked"


class SessionTaken(TryAgain):
    """Another process started a session with the name chosen for this one, with other messages."""

    slug = "session-taken"


class LaneTaken(TryAgain):
    """Another process holds the lease on this session's lane."""

    slug = "lane-taken"


class StaleBatch(TryAgain):
    """The cursor moved between reading a batch and recording its result."""

    slug = "stale-batch"


class ProviderFailed(OmError):
    """A model gave no usable reply. Its input waits for the next run."""

    slug = "provider-failed"
    exit_code = 69


class Unreachable(ProviderFailed):
    """No connection, no reply in time, or an endpoint out of order."""

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
    """The model, or a filter, declined."""

    slug = "refused"


class Unusable(ProviderFailed):
    """The reply does not have the requested form."""

    slug = "unusable-reply"


class OverLimit(ProviderFailed):
    """The request would exceed a limit on model costs, and was not sent."""

    slug = "over-limit"


class NotAllowed(OmError):
    """The key is missing, or not accepted by the endpoint."""

    slug = "not-allowed"
    exit_code = 77


class BadConfiguration(OmError):
    """A setting, or the store itself, does not fit this program."""

    slug = "bad-configuration"
    exit_code = 78


class UnknownModel(BadConfiguration):
    """The endpoint has no model with this name."""

    slug = "unknown-model"


class NewerStore(BadConfiguration):
    """The store was written by a later version of `om`."""

    slug = "newer-store"


class MigrationFailed(OmError):
    """The store could not be migrated to the schema of this version of `om`; it is unchanged."""

    slug = "migration-failed"


OF_MODELS = (ProviderFailed, NotAllowed, BadConfiguration)
"""Failures of a model rather than its input: the input waits, or rules handle it."""
OF_REPLIES = (CutOff, Refused, Unusable)
"""Failures of one reply rather than the connection: the next reply may be usable."""
OF_MATERIAL = (*OF_REPLIES, PromptTooLong)
"""Failures of a model with this input; other input may work."""
ELSEWHERE = (LaneTaken, StaleBatch)
"""Errors that mean another process is doing the work, or has done it."""
OF_ONE_SESSION = (*OF_MATERIAL, *ELSEWHERE)
"""Failures that leave other sessions unaffected."""
