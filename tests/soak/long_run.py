"""A run of a minute: ``bertdata create`` and Beam, with one worker and with two.

Run as ``python -m tests.soak.long_run`` (five minutes). 20 parts of 5 MB, recipe nvidia, both phases as
HDF5; wall seconds of the four commands, one after another.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.corpus import find_vocabulary, make_long_text
from benchmarks.measure import measure_command

PARTS, PART_BYTES = 20, 5_000_000
PROCESSES = ("--direct_running_mode", "multi_processing", "--direct_num_workers", "2")


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        text = make_long_text(PART_BYTES)
        parts = [Path(directory, f"part-{number:05}") for number in range(PARTS)]
        for part in parts:
            part.write_bytes(text)
        output, names = Path(directory, "shards"), [*map(str, parts)]
        common = ("--output", str(output), "--vocab", str(find_vocabulary()), "--recipe", "nvidia")
        plain = (sys.executable, "-m", "bertdata", "create", *names, *common)
        beam = (sys.executable, "-m", "beam_pipelines.prepare", "--input", *names, *common)
        commands = {
            "create, one worker": (*plain, "--workers", "1"),
            "create, two workers": (*plain, "--workers", "2"),
            "Beam, one worker": beam,
            "Beam, two processes": (*beam, *PROCESSES),
        }
        walls = {}
        for name, words in commands.items():
            walls[name] = measure_command(*words).wall
            shutil.rmtree(output)
    for name, wall in walls.items():
        print(f"{PARTS} parts of 5 MB, recipe nvidia: {name} {wall:.1f} s")
    one, two, beam_one, beam_two = walls.values()
    print(
        f"two workers to one: {one / two:.2f} times, with Beam {beam_one / beam_two:.2f} (wanted: 1.7); "
        f"Beam to create: {beam_one / one:.2f} with one worker, {beam_two / two:.2f} with two (wanted: 1.15)"
    )


if __name__ == "__main__":
    main()
