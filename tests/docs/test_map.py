"""The map of the code names what is there."""

from __future__ import annotations

import re

from tests.docs.generate import ROOT

PACKAGE = ROOT / "omcli"
MAP = (PACKAGE / "README.md").read_text(encoding="utf-8")
PLACES = re.findall(r"(?:^ *|`)((?:[a-z_]+/)+(?:[a-z_]+\.(?:py|md|toml))?|[a-z_]+\.py)(?=`|[: ]|,)", MAP, re.MULTILINE)
"""Files and folders as the map names them: from the package on, or by their last name."""


def test_every_file_and_folder_that_is_named_is_there() -> None:
    files = [path for folder in (PACKAGE, ROOT / "tests", ROOT / "man") for path in folder.rglob("*") if path.is_file()]
    files = [path.relative_to(ROOT) for path in files if path.suffix != ".pyc"]
    paths = {f"/{path}" for path in files} | {f"/{folder}/" for path in files for folder in path.parents}
    assert len(PLACES) > 40
    assert not [place for place in PLACES if not any(path.endswith(f"/{place}") for path in paths)]


def test_every_folder_is_named() -> None:
    folders = {module.parent for module in PACKAGE.rglob("*.py")} - {PACKAGE}
    missing = [folder for folder in folders if not re.search(rf"\b{folder.name}/", MAP)]
    assert not missing, missing
