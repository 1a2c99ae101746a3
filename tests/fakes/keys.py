"""A keyring in a file, for processes that are to find keys of encrypted stores there."""

from __future__ import annotations

import json
from pathlib import Path

from keyring.backend import KeyringBackend


class FileKeyring(KeyringBackend):
    """A keyring in the home folder, chosen by `PYTHON_KEYRING_BACKEND`."""

    priority = 1

    def get_password(self, service: str, username: str) -> str | None:
        found: str | None = self._entries().get(f"{service} {username}")
        return found

    def set_password(self, service: str, username: str, password: str) -> None:
        self._file().write_text(json.dumps({**self._entries(), f"{service} {username}": password}))

    def delete_password(self, service: str, username: str) -> None:
        raise NotImplementedError

    def _file(self) -> Path:
        return Path.home() / "keyring.json"

    def _entries(self) -> dict[str, str]:
        return json.loads(self._file().read_text()) if self._file().exists() else {}
