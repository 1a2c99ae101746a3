"""The exact counters read a rank file that is on disk, and touch nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from omcli.base.errors import BadConfiguration
from omcli.tokenizers import counter, counter_from_file, has_file
from tests.unit.tokenizers.samples import MORE, PROMISED

RANK_FILES = {
    "o200k": "fb374d419588a4632f3f557e76b4b70aebbca790",
    "cl100k": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
}


@pytest.mark.skipif(not has_file("o200k"), reason="the rank file of o200k_base is not on this machine")
def test_the_samples_state_their_true_counts() -> None:
    exact = counter("o200k")
    for kind, samples in (PROMISED | MORE).items():
        for sample in samples:
            assert exact.text(sample.text) == sample.o200k, f"a {kind} sample: {sample.text[:40]!r}"


@pytest.mark.skipif(not has_file("cl100k"), reason="the rank file of cl100k_base is not on this machine")
def test_the_older_tokenizer_counts_what_its_publisher_says() -> None:
    assert counter("cl100k").text("tiktoken is great!") == 6
    assert counter("cl100k").text("お誕生日おめでとう") == 9


@pytest.mark.parametrize("name", RANK_FILES)
def test_an_absent_rank_file_is_said_and_not_fetched(name: str, tmp_path: Path) -> None:
    """F86."""
    environment = {"TIKTOKEN_CACHE_DIR": str(tmp_path), "TMPDIR": str(tmp_path)}
    with pytest.raises(BadConfiguration, match="is not on this machine") as caught:
        counter_from_file(name, environment)
    assert "o200k-approx" in caught.value.hint
    assert str(tmp_path) in caught.value.hint
    assert not has_file(name, environment)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", RANK_FILES)
@pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"])
def test_a_damaged_rank_file_is_refused_and_left_alone(name: str, variable: str, tmp_path: Path) -> None:
    """F86: tiktoken's own loader would remove the file and fetch it again."""
    damaged = tmp_path / RANK_FILES[name]
    damaged.write_bytes(b"IQ== 0\n")
    with pytest.raises(BadConfiguration, match="is not the rank file"):
        counter_from_file(name, {variable: str(tmp_path)})
    assert damaged.read_bytes() == b"IQ== 0\n"


@pytest.mark.parametrize("name", RANK_FILES)
def test_a_rank_file_that_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    file = tmp_path / RANK_FILES[name]
    file.write_bytes(b"IQ== 0\n")
    file.chmod(0)
    if os.access(file, os.R_OK):
        pytest.skip("this user may read every file")
    with pytest.raises(BadConfiguration, match="cannot be read: Permission denied"):
        counter_from_file(name, {"TIKTOKEN_CACHE_DIR": str(tmp_path)})


def test_counting_by_arithmetic_loads_no_tokenizer() -> None:
    """S0.12, invariant 12."""
    program = (
        "import sys\n"
        "from omcli.tokenizers import counter\n"
        "assert counter().text('hello') > 0\n"
        "loaded = {'tiktoken', 'regex', 'requests'} & set(sys.modules)\n"
        "sys.exit(', '.join(loaded) or 0)\n"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, f"counting loads {finished.stderr}"
