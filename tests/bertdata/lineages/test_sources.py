"""Source files of a rebuild, which are found by their md5s."""

from bertdata.lineages.sources import SourceFiles, find_source_files, list_needed_files
from bertdata.lineages.step import Input, LineageFile, Step

MD5_OF_ABC = "900150983cd24fb0d6963f7d28e17f72"  # RFC 1321


def test_two_files_with_the_same_contents_are_both_found(tmp_path):
    files = tuple(LineageFile(name=name, md5=MD5_OF_ABC, bytes=3) for name in ("b.txt", "a.txt"))
    for file in files:
        (tmp_path / file.name).write_bytes(b"abc")
    step = Step(
        name="segment", record="0", settings={}, inputs=(Input(role="text", files=files, source=True),)
    )
    found = find_source_files(list_needed_files([step]), SourceFiles([str(tmp_path)]))
    assert found == {file: f"{tmp_path}/{file.name}" for file in files}
