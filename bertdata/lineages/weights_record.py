"""Record of another program's weights from which a run started: the names, sizes and md5s of their files."""

from collections.abc import Sequence

from bertdata.errors import ManifestError
from bertdata.io import storage
from bertdata.io.file_check import compute_file_md5
from bertdata.io.manifest_file import dump_json, parse_json
from bertdata.lineages.step import Input, LineageFile

WEIGHTS_FORMAT = "bertdata weights 1"
_REMARK = "weights of another program, which has left no record of how it made them"


def make_weights_record(files: Sequence[str]) -> bytes:
    """Return the record of a model's files.

    files: paths of the files of weights and of the model's configuration.
    """
    entries = [
        {"name": storage.get_base_name(path), "bytes": storage.read_size(path), "md5": compute_file_md5(path)}
        for path in files
    ]
    return dump_json({"format": WEIGHTS_FORMAT, "files": sorted(entries, key=lambda one: str(one["name"]))})


def make_weights_input(data: bytes, record: str) -> Input | None:
    """Return the input that a record of weights describes, or None if the data are another kind of record.

    record: md5 of the data.

    Raises ManifestError for a damaged record.
    """
    value = parse_json(data, record)
    if value.get("format") != WEIGHTS_FORMAT:
        return None
    try:
        files = tuple(LineageFile(**entry) for entry in value["files"])
    except (KeyError, TypeError):
        raise ManifestError(f"{record}: is damaged, expected the names, sizes and md5s of weights") from None
    return Input(role="start", files=files, record=record, source=True, remark=_REMARK)
