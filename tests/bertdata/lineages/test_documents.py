"""Copies of records in the folder ``sources/`` of a directory, and files there that are no records."""

import hashlib
from pathlib import Path

from bertdata.lineages.documents import RecordDocuments


def write_copy(folder: Path, name: str, content: bytes) -> str:
    (folder / "sources").mkdir(exist_ok=True)
    (folder / "sources" / name).write_bytes(content)
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def test_a_copy_that_no_longer_has_the_md5_of_its_name_is_a_fault(tmp_path):
    cited, found = "0" * 32, write_copy(tmp_path, f"{'0' * 32}.json", b'{"kind": "edited"}')
    documents = RecordDocuments()
    documents.add_directory(str(tmp_path))
    remark, is_fault = documents.explain_absence(cited, "the dataset's manifest")
    assert is_fault
    assert remark.startswith(f"{tmp_path}/sources/{cited}.json: ")
    assert remark.endswith(f"found md5 {found}, expected {cited}")


def test_a_damaged_copy_is_no_record_and_is_listed_unless_a_step_cites_it(tmp_path):
    cited, other = "0" * 32, "1" * 32
    for md5 in (cited, other):
        write_copy(tmp_path, f"{md5}.json", b'{"kind": "vocabulary"}')
    documents = RecordDocuments()
    documents.add_directory(str(tmp_path))
    assert documents.as_texts() == {}
    [fault] = documents.list_damaged_copies({cited})
    assert fault.startswith(f"{tmp_path}/sources/{other}.json: is damaged: found md5 ")
    assert fault.endswith(f", expected {other}")


def test_files_that_are_no_json_objects_are_no_records(tmp_path):
    record = write_copy(tmp_path, "parts.json", b"{}")
    write_copy(tmp_path, "latin.json", b'{"a": "\xe9"}')
    write_copy(tmp_path, "list.json", b"[1]")
    documents = RecordDocuments()
    documents.add_directory(str(tmp_path))
    assert documents.as_texts() == {record: "{}"}
