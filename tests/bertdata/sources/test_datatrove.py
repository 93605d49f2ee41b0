"""Files as datatrove's JsonlWriter writes them are read by the command that docs/text.md shows."""

import gzip
import json
import re
import shlex
from pathlib import Path

import pytest

from tests.support.commands import Program, contents
from tests.support.paths import ROOT

WRITTEN = [
    '{"text":"Eins zwei drei. Vier – fünf.\\nZweite Zeile.","id":"doc-0","metadata":{"url":"https://a/0","score":0}}',
    '{"id":"doc-1","metadata":{"url":"https://a/1","text":"no text of its own"}}',
    '{"text":"It was \\"here\\", he said.\\n\\nThen it left.","id":"doc-2"}',
]
"""Lines of datatrove 0.10.1: fields that are empty are left out."""


def test_the_shown_command_reads_what_datatrove_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bertdata: Program, punkt_tables: None
) -> None:
    (tmp_path / "filtered").mkdir()
    for rank, lines in enumerate([WRITTEN[:2], WRITTEN[2:]]):
        data = "".join(f"{line}\n" for line in lines).encode()
        (tmp_path / "filtered" / f"{rank:05d}.jsonl.gz").write_bytes(gzip.compress(data))
    shown = re.search(r"^bertdata (segment filtered .*)$", (ROOT / "docs/text.md").read_text(), re.MULTILINE)
    assert shown is not None
    monkeypatch.chdir(tmp_path)
    outcome = bertdata(*shlex.split(shown[1]), "--workers", "1", "--sentences", "none")
    assert outcome.status == 0, outcome.err
    found = contents(tmp_path / "parts")
    text = "Eins zwei drei. Vier – fünf.\nZweite Zeile.\n\n" + 'It was "here", he said.\nThen it left.\n\n'
    assert found["part-00000.txt"].decode() == text
    line = {"file": "00000.jsonl.gz", "record": 2, "id": "doc-1", "reason": "malformed"}
    assert json.loads(found["removed.jsonl"]) == {**line, "fault": "has no field 'text'"}
