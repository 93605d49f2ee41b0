"""The manifest of a directory of text in fairseq's binary format.

``schemas/binarised_manifest.json`` defines the manifest's format. It contains no time, host name or path, so
the same input always gives the same manifest.
"""

from dataclasses import asdict, dataclass
from typing import Any

from bertdata.io.file_check import FileEntry, dump_entries, parse_entries
from bertdata.io.manifest_file import FORMAT_VERSION, dump_json, format_md5sums, parse_checked

BINARISED_KIND = "binarised lines"


@dataclass(frozen=True, kw_only=True, slots=True)
class BinarisedInput:
    """Manifest entry of a text file that was converted to token ids.

    tokens: number of ids, including the end token of each line.
    """

    name: str
    bytes: int
    md5: str
    lines: int
    tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class BinarisedManifest:
    """The manifest of a finished directory of text in fairseq's binary format.

    tokenizer: kind of tokeniser, md5 of its file (``vocabulary``), and the token of each special role.
    inputs: the text files, in the order of their lines in the binary file.
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

    def make_plan(self) -> dict[str, Any]:
        """Return the plan of the directory: everything that decides its files, except the contents of the
        inputs.

        A later run may only continue the directory if it has the same plan.
        """
        return make_binarised_plan(self.tokenizer, [one.name for one in self.inputs])

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
        """Return the contents of the file MD5SUMS, in the format of the program md5sum."""
        return format_md5sums(self.files, self.dump())


def make_binarised_plan(tokenizer: dict[str, Any], inputs: list[str]) -> dict[str, Any]:
    """Return the plan of a directory: everything that decides its files, except the contents of the inputs.

    tokenizer: kind of tokeniser, md5 of its file, and the token of each special role.
    inputs: names of the text files, in order.
    """
    return {
        "tokenizer": tokenizer["kind"],
        "vocabulary": tokenizer["vocabulary"],
        "roles": tokenizer["roles"],
        "inputs": inputs,
    }


def parse_binarised_manifest(data: bytes, where: str) -> BinarisedManifest:
    """Parse a manifest and check it against its schema.

    where: path of the manifest, for error messages.

    Raises ManifestError, which says what does not fit.
    """
    value = parse_checked(data, where, "binarised_manifest")
    return BinarisedManifest(
        tokenizer=value["tokenizer"],
        inputs=tuple(BinarisedInput(**item) for item in value["inputs"]),
        files=parse_entries(value["files"], where),
    )
