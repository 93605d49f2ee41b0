"""A worker of the trainer that measures its memory. Usage: ``measured_worker.py FOLDER ARGUMENTS``.

It writes two numbers of bytes to FOLDER/RANK.json: the memory before the run, with all modules imported, and
the peak until the end. Memory mapped from files, such as the libraries' code, is not counted.
"""

import json
import os
import re
import sys
from pathlib import Path

import torch.distributed.fsdp
import torch.distributed.pipelining

import trainer.run.pretrain  # noqa: F401
from trainer.__main__ import main

STATUS = Path("/proc/self/status")


def kilobytes(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB$", STATUS.read_text(), re.MULTILINE)
    assert found
    return int(found[1])


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    torch.ones(64, 64) @ torch.ones(64, 64)  # starts the threads of the products
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    before = kilobytes("RssAnon")
    status = main(sys.argv[2:])
    note = {"before": before * 1024, "peak": (kilobytes("VmHWM") - kilobytes("RssFile")) * 1024}
    (folder / f"{os.environ['RANK']}.json").write_text(json.dumps(note))
    sys.exit(status)
