"""A small share of ``python -m tests.soak.hostile_files``: files of others end in one line."""

from pathlib import Path

import pytest

from tests.soak.hostile_files import make_place, try_cases


@pytest.mark.parametrize("count", [24, pytest.param(2_000, marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_hostile_files_end_in_a_result_or_in_one_line(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)  # and back afterwards
    cases = make_place(place)
    found = list(try_cases(place, cases, count, seed=5))
    assert len(found) >= count - len(cases)
    assert [
        f"{case.file} by {case.words[0]}: {what}: {fault}" for case, what, _, fault in found if fault
    ] == []
