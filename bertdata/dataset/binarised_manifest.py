"""Read and write the manifest of a directory of text in fairseq's binary format (binarised lines).

The manifest's format is defined in ``schemas/binarised_manifest.json``. It holds no time, host name or path,
so the same input gives the same manifest.
"""

from dataclasses import asdict, dataclass
from typing import Any

from bertdata.io.file_check import FileEntry, dump_entries, parse_entries
from bertdata.io.manifest_file import FORMAT_VERSION, dump_json, format_md5sums, parse_checked

BINARISED_KIND = "binarised lines"


@dataclass(frozen=True, kw_only=True, slots=True)
class BinarisedInput:
    """A text file that was converted to ids.

    tokens: number of ids of its lines, end tokens included.
    """

    name: str
    bytes: int
    md5: str
    lines: int
    tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class BinarisedManifest:
    """Manifest of a finished directory of text in fairseq's binary format.

    tokenizer: kind, md5 of the tokeniser's file (``vocabulary``) and the token of each role.
    inputs: in the order of their lines in the binary file.
    """

    tokenizer: dict[str, Any]
    inputs: tuple[BinarisedInput, ...]
    files: tuple[FileEntry, ...]

    @property
    def lines(self) -> int:
        return sum(one.lines for one in self.inputs)

    @property
    def tokens(self) -> int:
        return sum(one.tokens for one in self.inputs)

    def terms(self) -> dict[str, Any]:
        """Return the plan of the directory: everything its output depends on except the inputs' contents.

        A later run may only continue the directory if it has the same plan.
        """
        return plan_terms(self.tokenizer, [one.name for one in self.inputs])

    def dump(self) -> bytes:
        return dump_json(
            {
                "format_version": FORMAT_VERSION,
                "kind": BINARISED_KIND,
                "tokenizer": self.tokenizer,
                "inputs": [asdict(one) for one in self.inputs],
                "files": dump_entries(self.files),
                "totals": {"lines": self.lines, "tokens": self.tokens},
            }
        )

    def md5sums(self) -> bytes:
        """Return the contents of MD5SUMS, in the format of the program md5sum."""
        return format_md5sums(self.files, self.dump())


def plan_terms(tokenizer: dict[str, Any], inputs: list[str]) -> dict[str, Any]:
    """Return everything that the output depends on except the contents of the inputs."""
    return {
        "tokenizer": tokenizer["kind"],
        "vocabulary": tokenizer["vocabulary"],
        "roles": tokenizer["roles"],
        "inputs": inputs,
    }


def parse_binarised_manifest(data: bytes, where: str) -> BinarisedManifest:
    """Parse a manifest and check it against its schema. Raises ManifestError, which says what does not fit.
    """
    value = parse_checked(data, where, "binarised_manifest")
    return BinarisedManifest(
        tokenizer=value["tokenizer"],
        inputs=tuple(BinarisedInput(**item) for item in value["inputs"]),
        files=parse_entries(value["files"], where),
    )
