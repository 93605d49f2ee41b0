"""Cost of turning compressed JSON lines into blocks of token ids on disk.

``bertdata create`` is compared with a program that uses Hugging Face's ``datasets``. Both use two processes
and run alternately, with WordPiece and with byte-level BPE. The other program uses tokenizers in the fastest
way: a single call of ``map`` tokenizes with ``encode_batch_fast`` and makes blocks of ids as NumPy arrays.
``create`` also writes its text parts, md5s and manifests.

Memory is the resident memory of all processes of a command together, at the moment when it is largest. Pages
of memory that processes share are counted for each process.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

import psutil

from benchmarks import corpus
from benchmarks.byte_bpe import ROLES, train_tokenizer
from benchmarks.record_corpus import write_json_lines

IDS = 512
WORKERS = 2
_POLL_SECONDS = 0.1
_PEER = """
import sys
from datasets import load_dataset
from tokenizers import Tokenizer
import numpy as np

source, tokenizer_file, output, ids = sys.argv[1:]
tokenizer = Tokenizer.from_file(tokenizer_file)

def blocks(batch):
    found = [np.array(one.ids, np.int32) for one in tokenizer.encode_batch_fast(batch["text"])]
    joined = np.concatenate(found)
    return {"input_ids": joined[: len(joined) // int(ids) * int(ids)].reshape(-1, int(ids))}

data = load_dataset("json", data_files=f"{source}/*.jsonl.zst", split="train", cache_dir=f"{output}/cache",
                    num_proc=2 if len(__import__("os").listdir(source)) > 1 else None)
made = data.map(blocks, batched=True, remove_columns=data.column_names, num_proc=2)
print(len(made) * int(ids))
"""


@dataclass(frozen=True)
class TreeCost:
    """Cost of a command with all its processes.

    megabytes: resident memory of all processes together, at the moment when it is largest.
    """

    cpu: float
    wall: float
    megabytes: float


def measure_run(*words: str) -> TreeCost:
    """Run a command and return its cost. Exit with a message if it fails."""
    start, peak = time.perf_counter(), 0
    with tempfile.TemporaryFile() as told:
        before = _read_children_seconds()
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=told)
        while process.poll() is None:
            peak = max(peak, _read_resident_bytes(process.pid))
            time.sleep(_POLL_SECONDS)
        if process.returncode:
            told.seek(0)
            sys.exit(f"benchmarks.records: {' '.join(words)[:200]}: {told.read().decode()[-2000:]}")
    return TreeCost(_read_children_seconds() - before, time.perf_counter() - start, peak / 1e6)


def _read_children_seconds() -> float:
    """Return the CPU seconds that all ended child processes have used."""
    found = psutil.Process().cpu_times()
    return found.children_user + found.children_system


def _read_resident_bytes(pid: int) -> int:
    """Return the resident memory of a process in bytes, or 0 if it has ended."""
    total = 0
    try:
        first = psutil.Process(pid)
        for one in (first, *first.children(recursive=True)):
            try:
                total += one.memory_info().rss
            except psutil.Error:
                continue
    except psutil.Error:
        pass
    return total


def make_tokenizers(place: Path) -> dict[str, tuple[list[str], Path]]:
    """Make a WordPiece and a byte-level BPE tokenizer.

    For each, the flags for ``create`` and the file for the other program are returned.
    """
    from tokenizers import BertWordPieceTokenizer

    vocabulary = corpus.find_vocabulary()
    wordpiece, bpe = place / "wordpiece.json", place / "tokenizer.json"
    BertWordPieceTokenizer(str(vocabulary), lowercase=True).save(str(wordpiece))
    wordpiece.write_text(json.dumps(json.loads(wordpiece.read_text()) | {"post_processor": None}))
    bpe.write_text(json.dumps(train_tokenizer()))
    return {
        "WordPiece": (["--vocab", str(vocabulary)], wordpiece),
        "byte-level BPE": ([f"--tokenizer={bpe}", *map("--role={}".format, ROLES)], bpe),
    }


@dataclass(frozen=True, kw_only=True)
class Source:
    """A directory of record files, and the size of their text in MB."""

    directory: Path
    megabytes: float
    label: str

    def run_ours(self, flags: list[str], output: Path, command: str = "create") -> TreeCost:
        """Run ``bertdata create`` on the files, and return its cost.

        flags: flags that name the tokenizer.
        """
        words = [sys.executable, "-m", "bertdata", command, str(self.directory), "--output", str(output)]
        own = ["--input-kind", "jsonl", "--text-field", "text", "--sentences", "none"]
        return measure_run(*words, *own, "--workers", str(WORKERS), *flags)

    def run_peer(self, tokenizer: Path, output: Path) -> TreeCost:
        """Run the other program, which uses Hugging Face's ``datasets``, and return its cost."""
        return measure_run(
            sys.executable, "-c", _PEER, str(self.directory), str(tokenizer), str(output), str(IDS)
        )

    def format_row(self, name: str, cost: TreeCost, ours: TreeCost | None = None) -> str:
        """Return a line of the table.

        name: name of the program.
        cost: cost of the program.
        ours: cost of ``bertdata create``, to compare with. None: nothing is compared.
        """
        rates = f"{self.megabytes / cost.wall:7.1f} {self.megabytes / cost.cpu:7.1f}"
        ratios = f"{cost.wall / ours.wall:6.1f} {cost.cpu / ours.cpu:6.1f}" if ours else ""
        return f"  {self.label:<22} {name:<26} {rates} {cost.megabytes:8.0f}  {ratios}"


def make_sources(place: Path, sizes: list[int]) -> list[Source]:
    """Write the record files and return their directories.

    There is a directory with one file for each size, and a directory with ten files that contain the same
    records as the last of these files.

    sizes: sizes in MB.
    """
    found = []
    for size in sizes:
        directories = {place / f"{size}-{files}": files for files in ((1, 10) if size == sizes[-1] else (1,))}
        megabytes = write_json_lines(directories, size) / 1e6
        for directory, files in directories.items():
            label = f"{size} MB, {files} file{'s' if files > 1 else ''}"
            found.append(Source(directory=directory, megabytes=megabytes, label=label))
    return found


def print_report(source: Source, place: Path, *, with_peer: bool) -> None:
    """Measure the programs on a directory of record files and print their costs.

    with_peer: True to measure the other program too.
    """
    output = place / "output"
    print(source.format_row("segment", source.run_ours([], output, "segment")), flush=True)
    rmtree(output)
    blocks = ["--objective=mlm", "--no-masks", "--blocks=none", "--dupe-factor=1", f"--max-seq-length={IDS}"]
    for name, (flags, file) in make_tokenizers(place).items():
        ours = source.run_ours([*flags, *blocks], output)
        print(source.format_row(f"create, {name}", ours), flush=True)
        rmtree(output)
        rmtree(f"{output}.text")
        if with_peer:
            print(source.format_row(f"datasets, {name}", source.run_peer(file, output), ours), flush=True)
            rmtree(output)


def main() -> None:
    """Measure the programs on files of several sizes and print their costs."""
    parser = argparse.ArgumentParser(prog="benchmarks.records", description=__doc__.split("\n")[0])
    parser.add_argument("--megabytes", type=int, nargs="+", default=[100, 1000], help="sizes of the text")
    parser.add_argument(
        "--peer-megabytes",
        type=int,
        default=100,
        help="largest size given to the peer, 1 GB of it takes an hour",
    )
    args = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.environ["HF_HUB_OFFLINE"] = "1"
    print(f"{'':<50} {'MB/s':>7} {'/CPU s':>7} {'MB held':>8}  {'times: wall, CPU':>13}")
    with tempfile.TemporaryDirectory() as folder:
        for source in make_sources(Path(folder), args.megabytes):
            print_report(source, Path(folder), with_peer=source.megabytes < args.peer_megabytes + 1)
    print("  (wanted: 5 times with WordPiece, 3 times with BPE; memory as at the smaller size)")


if __name__ == "__main__":
    main()
