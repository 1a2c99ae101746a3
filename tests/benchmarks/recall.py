"""What a search finds in a file and in a database of a server: the same, within two points.

Run as `python -m tests.benchmarks.recall [--only locomo-recall,beam-recall] [--vectors made-up] [--few 0]
[--server postgresql://…]`. The benches in the folder `shared` beside the checkout are run twice through the command
line, for stores in files and for stores on a server: the one named, whose user may create databases, or one that is
started for this. With `--vectors`, texts get vectors, of the model in `embeddings-local` or made-up ones; `--few` is
the number up to which a server compares all of them. Ends with 1 if the server's are lower by more than two points in
the column that a bench goes by, or a call failed; with 0, and a line that says so, if there is no such folder.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.compaction import scores, show
from tests.fake_provider import KEY, FakeModel
from tests.postgres_server import PostgresServer, remove, started
from tests.shared import SHARED

_LEAST = -0.02
_SERVER, _PREFIX, _FEW = "OM_BENCHMARK_SERVER", "OM_BENCHMARK_PREFIX", "OM_BENCHMARK_FEW"
"""Variables with the URL of the server, the beginning of the names of its databases, and the value of `--few`."""
_WITH_FEW = "import os, runpy, omcli.postgres.vectors as v; v.FEW = int(os.environ['OM_BENCHMARK_FEW']);"
_OM = (sys.executable, "-c", f"{_WITH_FEW} runpy.run_module('omcli', run_name='__main__', alter_sys=True)")


def main(arguments: Sequence[str]) -> int:
    """Prints both tables, then how they differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.recall")
    parser.add_argument("--only", default="locomo-recall,beam-recall", metavar="BENCHES")
    parser.add_argument("--server", metavar="URL")
    parser.add_argument("--vectors", choices=("local", "made-up"))
    parser.add_argument("--few", type=int, default=2_000, metavar="NUMBER")
    said = parser.parse_args(arguments)
    if not (SHARED / "bench").is_dir():
        print("no shared benches beside this checkout: nothing was measured")
        return 0
    with ExitStack() as opened:
        embeddings = opened.enter_context(_embeddings(said.vectors))
        server = opened.enter_context(_server(said.server))
        prefix = f"om_bench_{uuid.uuid4().hex[:8]}_"
        opened.callback(_drop, server, prefix)
        settings = Path(opened.enter_context(TemporaryDirectory(prefix="om-bench-"))) / "none.toml"
        settings.touch()
        given = {**embeddings, "OM_CONFIG": str(settings), _FEW: str(said.few)}
        called = ("-m", "tests.benchmarks.recall", "om")
        of_files = show("in files", scores(called, said.only, given))
        of_server = show("on a server", scores(called, said.only, {**given, _SERVER: server.url, _PREFIX: prefix}))
    is_below = bool(of_files["failures"] or of_server["failures"])
    for one, other in zip(of_files["tables"], of_server["tables"], strict=True):
        for column in one["columns"]:
            before, after = one["means"]["om"][column], other["means"]["om"][column]
            if before is not None and after is not None:
                print(f"{one['bench']}, {one['title']}: {column} {100 * before:.2f} -> {100 * after:.2f}")
                is_below |= column == one["headline"] and after - before < _LEAST
    return int(is_below)


@contextmanager
def _embeddings(vectors: str | None) -> Iterator[dict[str, str]]:
    """Yield the variables that choose a model for vectors."""
    if vectors != "made-up":
        yield {"OM_EMBEDDINGS_PROVIDER": "local"} if vectors else {}
        return
    with FakeModel() as fake:
        yield {
            "OM_EMBEDDINGS_PROVIDER": "openai",
            "OM_EMBEDDINGS_MODEL": "made-up",
            "OM_EMBEDDINGS_BASE_URL": fake.url,
            "OPENAI_API_KEY": KEY,
        }


@contextmanager
def _server(url: str | None) -> Iterator[PostgresServer]:
    if url is not None:
        yield PostgresServer(url)
        return
    with TemporaryDirectory(prefix="om-bench-") as folder:
        try:
            yield started(Path(folder) / "server")
        finally:
            remove(Path(folder) / "server")


def _drop(server: PostgresServer, prefix: str) -> None:
    for (name,) in server.run(f"SELECT datname FROM pg_database WHERE starts_with(datname, '{prefix}')"):
        server.drop(name)


def om(arguments: Sequence[str]) -> int:
    """`om` as the benches call it. A store's file stands for a database of the server, if there is one."""
    environment = dict(os.environ)
    if _SERVER in os.environ and "OM_DB" in os.environ:
        server = PostgresServer(os.environ[_SERVER])
        name = os.environ[_PREFIX] + sha256(os.environ["OM_DB"].encode()).hexdigest()[:16]
        if arguments[0] == "observe":
            server.run(f"CREATE DATABASE {name}")
        environment["OM_DB"] = server.url_of(name)
    ended = subprocess.run([*_OM, *arguments], check=False, env=environment).returncode
    if arguments[0] == "observe" and "OM_EMBEDDINGS_PROVIDER" in environment and not ended:
        return subprocess.run([*_OM, "embed", "--quiet"], check=False, env=environment).returncode
    return ended


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(om(given[1:]) if given[:1] == ["om"] else main(given))
