"""Files and folders that are followed: what is seen by a look, and what that costs."""

from __future__ import annotations

import os
import time
from pathlib import Path

from omcli.wiring.folders import Folders


def names(folder: Path, *patterns: str) -> set[str]:
    """The files that are seen in a folder."""
    return {os.path.relpath(path, folder) for path in Folders([str(folder)], patterns).look().files}


def test_what_transcripts_are_called_counts_and_what_is_hidden_does_not(tmp_path: Path) -> None:
    for name in (
        "a.jsonl",
        "b/c/d.json",
        "b/.e.jsonl",
        ".f/g.jsonl",
        "h.py",
        "i.txt",
        "j.jsonl/k.md",
        "l.JSONL",
        "m.log",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("", "utf-8")
    os.mkfifo(tmp_path / "n.jsonl")
    assert names(tmp_path) == {"a.jsonl", "b/c/d.json", "i.txt", "j.jsonl/k.md"}
    assert names(tmp_path, "*.py", "m.*") == {"h.py", "m.log"}
    guessing = Folders([str(tmp_path), str(tmp_path / "i.txt")])
    assert not guessing.is_guess(str(tmp_path / "a.jsonl"))
    assert not guessing.is_guess(str(tmp_path / "i.txt"))
    assert guessing.is_guess(str(tmp_path / "b/c/d.json"))


def test_a_file_that_was_named_counts_whatever_it_is_called(tmp_path: Path) -> None:
    file = tmp_path / ".chat"
    file.write_text("", "utf-8")
    assert list(Folders([str(file)]).look().files) == [str(file)]
    assert list(Folders([str(tmp_path / "nowhere")]).look().files) == []


def test_a_change_that_keeps_the_size_is_seen(tmp_path: Path) -> None:
    """Also where the time of the file is set back."""
    file = tmp_path / "a.jsonl"
    file.write_text("one", "utf-8")
    folders = Folders([str(tmp_path)])
    before = folders.look().files
    assert folders.look().files == before
    found = file.stat()
    time.sleep(0.02)
    file.write_text("two", "utf-8")
    os.utime(file, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert folders.look().files != before


def test_a_look_at_thousands_of_files_opens_none_and_is_cheap(tmp_path: Path) -> None:
    """Invariant 12 for what looks every two seconds: 5,000 files cost 25 ms where this was written."""
    for number in range(5_000):
        if number % 100 == 0:
            (tmp_path / str(number)).mkdir()
        (tmp_path / str(number // 100 * 100) / f"{number}.jsonl").touch(0o000)
    folders, taken = Folders([str(tmp_path)]), list[float]()
    for _ in range(5):
        begin = time.process_time()
        assert len(folders.look().files) == 5_000
        taken.append(time.process_time() - begin)
    assert min(taken) < 0.4, "in some of them this process was collecting garbage"
