"""Large values between two stages, in temporary files or through the runner."""

from pathlib import Path

import pytest

from beam_pipelines.transport.spill_files import FileRange, SpillFiles, count_bytes, cut_value, read_value

VALUES = [b"first", b"", b"the third value"]


@pytest.mark.parametrize("is_shared", [True, False])
def test_values_come_back_whole_or_in_part(tmp_path: Path, is_shared: bool) -> None:
    written = SpillFiles(str(tmp_path / "unfinished") if is_shared else None).write(VALUES)
    assert [isinstance(value, FileRange) for value in written] == [is_shared] * 3
    assert [read_value(value) for value in written] == VALUES
    assert [count_bytes(value) for value in written] == [5, 0, 15]
    cut = cut_value(written[2], 4, 9)
    assert (read_value(cut), count_bytes(cut)) == (b"third", 5)


def test_an_object_store_has_no_temporary_files(tmp_path: Path) -> None:
    assert SpillFiles.in_directory("memory://bucket/unfinished").directory is None
    assert SpillFiles.in_directory(str(tmp_path)).directory == str(tmp_path)


def test_a_second_attempt_writes_another_file_and_all_are_removed(tmp_path: Path) -> None:
    files = SpillFiles(str(tmp_path))
    values = [*files.write(VALUES), *files.write(VALUES)]
    assert len({value.path for value in values if isinstance(value, FileRange)}) == 2
    (tmp_path / "shard.tfrecord").write_bytes(b"kept")
    files.remove_all()
    assert [path.name for path in tmp_path.iterdir()] == ["shard.tfrecord"]
    SpillFiles(None).remove_all()  # there is nothing to remove
