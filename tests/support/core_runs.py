"""Commands of the trainer with some of its extensions hidden, as if their folders were deleted.

usage: python -m tests.support.core_runs, with JSON on standard input: a list of [hidden extensions, words of
the command]. They run one after the other in this process. The last line of standard output is JSON: for
each command its exit status, its standard error, and the modules of the trainer imported until then.
"""

import io
import json
import sys
from collections.abc import Collection, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import run
from typing import Any, NamedTuple

from tests.support.paths import ROOT

EXTENSIONS = "trainer.extensions"


class Hidden:
    """A finder of modules for sys.meta_path that finds some extensions missing."""

    def __init__(self) -> None:
        self.names: Collection[str] = ()

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Raise for a hidden module; None leaves the others to Python's finders."""
        if name.startswith(f"{EXTENSIONS}.") and name.split(".")[2] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


class Ended(NamedTuple):
    """A command's exit status, its standard error, and all modules of the trainer imported until its end."""

    status: int
    errors: str
    modules: list[str]


def run_commands(*commands: tuple[Collection[str], Sequence[object]]) -> list[Ended]:
    """Run the commands, each with its hidden extensions, in one new process."""
    given = json.dumps([[list(hidden), list(map(str, words))] for hidden, words in commands])
    words = [sys.executable, "-m", "tests.support.core_runs"]
    done = run(words, input=given, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return [Ended(*one) for one in json.loads(done.stdout.splitlines()[-1])]


def _run(words: Sequence[str]) -> Ended:
    from trainer.__main__ import main

    errors = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(errors):
        try:
            status = main(list(words))
        except SystemExit as ended:  # --help
            status = int(ended.code or 0)
    modules = sorted(name for name in sys.modules if name.split(".")[0] in ("trainer", "torch"))
    return Ended(status, errors.getvalue(), [name for name in modules if "torch." not in name])


def _main() -> None:
    hidden = Hidden()
    sys.meta_path.insert(0, hidden)  # type: ignore[arg-type]
    found = list[Any]()
    for names, words in json.load(sys.stdin):
        hidden.names = names
        for module in [name for name in sys.modules if name.startswith(EXTENSIONS)]:
            del sys.modules[module]
        found.append(_run(words))
    print(json.dumps(found))


def extensions() -> list[str]:
    """The extensions that there are, by the names of their folders."""
    folder = Path(ROOT, *EXTENSIONS.split("."))
    return sorted(path.parent.name for path in folder.glob("*/__init__.py"))


if __name__ == "__main__":
    _main()
