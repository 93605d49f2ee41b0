"""Tries a tokenizer.json in a separate process, because the tokenizers library can abort the process it runs
in.

To join the two tokens of a BPE merge, ``tokenizers`` removes the first bytes of the second token, as many as
``continuing_subword_prefix`` has. If this cuts a character in two, the result is not UTF-8, and
``tokenizers`` aborts the process. No ``except`` can catch this.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

SECONDS = 120.0
"""Time limit of a trial in seconds. A vocabulary of 256,000 tokens takes about 2 s."""

_PROBE_TOKENS = 1000
"""Number of tokens of the model from which the text for the trial is made."""

_PROGRAM = """
import json, os, sys
sys.path[:] = json.loads(sys.argv[1])
from tokenizers import Tokenizer
lines = sys.stdin.buffer.read().split(b"\\n", 1)
try:
    Tokenizer.from_str(lines[1].decode()).encode(json.loads(lines[0]))
except BaseException:  # the same error occurs in the other process, which reports it
    pass
os._exit(0)
"""


def needs_trial(parsed: Mapping[str, Any]) -> bool:
    """Return True if the file has a setting that is known to make ``tokenizers`` abort on some files."""
    return bool(parsed["model"].get("continuing_subword_prefix")) and parsed["model"]["type"] == "BPE"


def try_in_separate_process(document: str, parsed: Mapping[str, Any]) -> str | None:
    """Load a tokenizer.json in a separate process, and encode a text that is made of its tokens there.

    Return how the process was killed, for example "signal 6, SIGABRT", or None if it was not killed.

    document: content of the file.
    parsed: the parsed file.
    """
    # Loading alone may not show the fault, so a text that is made of the vocabulary's tokens is encoded too.
    tokens = list(parsed["model"]["vocab"])[:_PROBE_TOKENS]
    probe = json.dumps("".join(token for token in tokens if isinstance(token, str)))
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, json.dumps(sys.path)],
            input=f"{probe}\n{document}".encode("utf-8", "surrogatepass"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            env={**os.environ, "TOKENIZERS_PARALLELISM": "false"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer after {SECONDS:g} s"
    if done.returncode >= 0:
        return None
    number = -done.returncode
    try:
        return f"signal {number}, {signal.Signals(number).name}"
    except ValueError:  # Some signals have no name.
        return f"signal {number}"
