"""The clients' npm packages, installed once into a folder for caches."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

CACHE = Path(os.environ.get("OM_TEST_CLIENTS_CACHE") or Path(tempfile.gettempdir(), "om-clients"))
VERSIONS: Mapping[str, tuple[str, str]] = {
    "claude-code": ("@anthropic-ai/claude-code", "2.1.332"),
    "codex": ("@openai/codex", "0.171.0"),
    "pi": ("@earendil-works/pi-coding-agent", "1.5.2"),
    "opencode": ("opencode-ai", "1.18.33"),
    "gemini": ("@google/gemini-cli", "0.61.0"),
}
"""The package of each client, and the version that is known to run here."""
_NODE = ("node", "22.23.3")
"""pi needs a newer node than many machines have."""
_MINUTES = 10


class CannotInstall(Exception):
    """A package that npm does not install, with the end of its output."""


def folders_of_programs(client: str) -> tuple[Path, ...]:
    """Return the folders with the client's program and its node. They are installed first if they are not there."""
    package, version = VERSIONS[client]
    return (_installed(package, version), _installed(*_NODE))


def _installed(package: str, version: str) -> Path:
    folder = CACHE / f"{package.rpartition('/')[2]}-{version}"
    programs = folder / "node_modules" / ".bin"
    if not (folder / "done").exists():
        npm = shutil.which("npm")
        if npm is None:
            raise CannotInstall("npm is not on PATH")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "package.json").write_text(json.dumps({"private": True}))
        ended = subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", "--cache", str(CACHE / "npm"), f"{package}@{version}"],
            cwd=folder, capture_output=True, text=True, timeout=_MINUTES * 60, check=False,
        )  # fmt: skip
        if ended.returncode:
            raise CannotInstall(f"npm install {package}@{version}: {ended.stderr.strip()[-300:]}")
        (folder / "done").touch()
    return programs
