"""The campaign: a small share of it, and that it sees what is wrong."""

import random
from pathlib import Path

import pytest

from tests.soak import campaign
from tests.soak.damaged_outputs import damage_output
from tests.soak.hostile_checkpoints import Ending


@pytest.mark.thorough
@pytest.mark.parametrize("part", ["damage", "kills", "accidents", "buckets"])
def test_a_small_campaign_holds(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    counts = ("--cases=120", "--kills=24", "--accidents=24", "--buckets=6", "--seed=56")
    status = campaign.main([f"--parts={part}", *counts])
    assert status == 0, capsys.readouterr().out


def test_damage_that_a_check_does_not_notice_or_name_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "shard").write_bytes(b"content")

    def check(place: Path) -> Ending:
        data = (place / "out" / "shard").read_bytes()
        if data == b"content" or len(data) > len(b"content"):  # a check that sees no extension
            return Ending(0, "", "")
        return Ending(1, "some file is damaged", "")

    found = list(damage_output(tmp_path, "some", ["out/shard"], check, 3, random.Random(1)))
    assert [one.damage.split()[0] for one in found][:2] == ["bit", "cut"]
    assert [one.fault.partition(":")[0] for one in found] == ["is not named"] * 2 + ["was not found"]
    assert (tmp_path / "out" / "shard").read_bytes() == b"content"
