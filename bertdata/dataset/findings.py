"""Results of a verification: a finding for each file, and the report that contains all findings."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

from bertdata.io.file_check import Misfit

MISSING = "missing"
"""Status of a file that does not exist although a manifest or a list of md5s names it."""
EXTRA = "extra"
"""Status of a file that exists although the manifest does not list it."""
LEFT_OUT = "left out"
"""Status of an input that the manifest lists as left out of the dataset."""

_WORKERS = 4  # number of threads; they run in parallel because hashing releases the GIL


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """The result of checking one file.

    status: the result in one or two words, such as "right", "missing", "wrong md5" or "damaged".
    """

    file: str
    status: str
    found: str | None = None
    expected: str | None = None
    detail: str | None = None
    is_fault: bool = True

    def __str__(self) -> str:
        text = f"{self.file}: {self.status}"
        if self.found is not None:
            text += f": found {self.found}, expected {self.expected}"
        return f"{text}; {self.detail}" if self.detail else text


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainLink:
    """A step on the way from a Wikipedia dump to a dataset, as its manifest describes it.

    directory: for the last step, which is listed first, the verified directory. Empty for the steps before
        it.
    step: name of the step, such as "dataset", "parts", "articles" or "dump". Empty if no earlier step is
        known.
    description: what the step made, or why no earlier step is known.
    manifest_md5: md5 of the step's manifest. None if there is no manifest.
    """

    directory: str = ""
    step: str
    description: str
    manifest_md5: str | None = None

    def __str__(self) -> str:
        if not self.step:
            return f"  the chain ends here: {self.description}"
        md5 = "" if self.manifest_md5 is None else f"; manifest md5 {self.manifest_md5}"
        start = f"{self.directory}: " if self.directory else f"  <- {self.step}: "
        return f"{start}{self.description}{md5}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """The result of a verification, with a finding for each file.

    links: for each verified directory, the steps from it back to the Wikipedia dump.
    signature: line about the directory's signature. None if no signature was checked, or if it has a fault.
    """

    path: str
    findings: tuple[Finding, ...] = field(default=())
    links: tuple[ChainLink, ...] = ()
    signature: str | None = None

    @property
    def chain(self) -> tuple[str, ...]:
        """The steps from each verified directory back to the Wikipedia dump, as one line of text per step."""
        return tuple(map(str, self.links))

    @property
    def faults(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.is_fault]

    @property
    def sound(self) -> bool:
        return not self.faults

    def count(self, status: str) -> int:
        return sum(finding.status == status for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "sound": self.sound,
            "right": self.count("right"),
            "findings": [asdict(finding) for finding in self.findings],
            **({"chain": list(self.chain)} if self.chain else {}),
            **({"signature": self.signature} if self.signature else {}),
        }


def make_right_finding(file: str, detail: str | None = None) -> Finding:
    """Return the finding for a file that has no fault."""
    return Finding(file=file, status="right", detail=detail, is_fault=False)


def make_misfit_finding(file: str, misfit: Misfit, detail: str | None = None) -> Finding:
    """Return the finding for a file that differs from its manifest entry.

    misfit: the difference.
    """
    return Finding(
        file=file, status=misfit.status, found=misfit.found, expected=misfit.expected, detail=detail
    )


def compare_values(file: str, wrong: str, found: str, expected: str, detail: str | None = None) -> Finding:
    """Return the finding "right" if two values are equal. Otherwise return a fault.

    wrong: status of the fault.
    """
    if found == expected:
        return make_right_finding(file)
    return Finding(file=file, status=wrong, found=found, expected=expected, detail=detail)


def check_in_parallel(check: Callable[[Any], Finding], items: Iterable[Any]) -> list[Finding]:
    """Check all items in parallel threads. Return the findings in the order of the items."""
    with ThreadPoolExecutor(_WORKERS) as pool:
        return list(pool.map(check, items))
