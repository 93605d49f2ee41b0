"""tools/hashed-requirements.txt: the pins of constraints.txt for every extra, with hashes of their files."""

import re

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.paths import ROOT

ENTRY = re.compile(r"^(\S+==\S+(?: ; .+?)?) \\\n((?: {4}--hash=\S+(?: \\)?\n)+)", re.MULTILINE)
SHA256 = re.compile(r" {4}--hash=sha256:[0-9a-f]{64}(?: \\)?")


def read_entries() -> list[tuple[Requirement, list[str]]]:
    """Return each pinned package with the lines of its hashes."""
    text = (ROOT / "tools" / "hashed-requirements.txt").read_text(encoding="utf-8")
    found = [(Requirement(pin), lines.splitlines()) for pin, lines in ENTRY.findall(text)]
    assert ENTRY.sub("", text) == "", "something else is in the file"
    return found


def test_every_file_of_every_package_has_a_hash() -> None:
    for requirement, lines in read_entries():
        assert lines
        assert all(SHA256.fullmatch(line) for line in lines), requirement


def test_the_pins_are_those_of_the_constraints() -> None:
    constraints = set[tuple[str, str]]()
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        pinned = Requirement(line)
        constraints.add((canonicalize_name(pinned.name), str(pinned.specifier)))
    pins = {(canonicalize_name(pinned.name), str(pinned.specifier)) for pinned, _ in read_entries()}
    assert pins <= constraints


def test_every_package_of_every_extra_is_pinned() -> None:
    text = (ROOT / "setup.py").read_text(encoding="utf-8")
    extras = text.partition('EXTRAS["all"]')[0]
    wanted = {Requirement(word).name for word in re.findall(r'"([a-z][^":]+(?:; [^"]+)?)"(?=[,\]])', extras)}
    pinned = {canonicalize_name(requirement.name) for requirement, _ in read_entries()}
    assert {"torch", "apache-beam"} <= wanted
    assert {canonicalize_name(name) for name in wanted} <= pinned
