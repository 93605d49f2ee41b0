"""The measurement of the cache of remote data files."""

import pytest

from benchmarks.cache import measure, write_dataset


@pytest.mark.thorough
def test_with_a_cache_of_the_dataset_a_machine_reads_each_file_once(tmp_path):
    (tmp_path / "data").mkdir()
    size = write_dataset(tmp_path / "data", 12, 100)
    (tmp_path / "log").touch()
    given = {"workers": 2, "latency": 0.0, "speed": 1000.0, "gigabytes": size / 1e9}
    places = {name: str(tmp_path / name) for name in ("data", "cache", "log")}
    epochs = measure({**given, **places})
    assert sum(files for _, files, _ in epochs) == 12
    assert sum(read for *_, read in epochs) == size
