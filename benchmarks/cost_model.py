"""Estimate of the hours, bytes and money that large corpora take, for the tables of docs/speed.md.

Run it as ``python -m benchmarks.cost_model``. It takes two minutes and needs the reference kit. The estimate
is made from speeds measured in the same run, in CPU seconds of whole commands on one core. Prices and the
speed of the disk are assumptions, which are constants of this module.
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks import corpus, measure
from benchmarks.examples import run_create
from benchmarks.extract import WITH_TEMPLATES, measure_extraction_rate
from benchmarks.segmenting import copy_kit_files, measure_rate
from bertdata.build.shuffle.gather import gather_documents
from bertdata.build.shuffle.keys import sort_documents
from bertdata.tokens.load import load_tokenizer

PART_MB = 10
CORES = 16
DISK_MB_S = 1000  # MB per second of steady writes to a local SSD
MACHINE_DOLLARS_HOUR = 0.78  # price per hour of a 16-core machine on demand
VCPUS = 128
# List prices of Dataflow batch jobs in us-central1: an hour of a vCPU with 3.75 GB of memory, and a GB that
# passes through the shuffle service
VCPU_DOLLARS_HOUR, SHUFFLE_DOLLARS_GB = 0.056 + 3.75 * 0.003557, 0.011
STORE_DOLLARS_GB_MONTH = 0.02
DATAFLOW_START_HOURS = 0.1  # hours until a machine has started and has built this package
SHARDS_PER_TEXT = (
    391 / 13.7
)  # MLPerf's published shards of English Wikipedia; a text of short articles makes fewer
VCPU_OF_CORE = 0.6  # speed of a vCPU (a hardware thread) as a share of a core's speed


@dataclass(frozen=True)
class Rates:
    """Measured speeds: MB of a stage's input per CPU second. For ``create`` it is MB of the shards it writes.

    extract, extract_mlperf: speeds of the two extractors. The tables use ``extract``, the slower of the two.
    shuffled_per_text: bytes that a global shuffle moves per byte of text.
    """

    extract: float
    extract_mlperf: float
    segment: float
    create: float
    shuffle: float
    shuffled_per_text: float


@dataclass(frozen=True)
class CorpusSize:
    """Size of a corpus in MB: of its XML, which is 0 for plain text, and of its sentences."""

    name: str
    xml_mb: float
    text_mb: float


CORPORA = (
    CorpusSize("English Wikipedia, 75 GB of XML", 75_163, 13_700),
    CorpusSize("1 TB of text", 0, 1_000_000),
)


def measure_rates() -> Rates:
    """Measure the speeds on this machine.

    Extraction is measured on a dump with templates, and the other stages on English text.
    """
    kit = corpus.find_kit()
    if kit is None:
        sys.exit("benchmarks.cost_model: no reference kit; set BERTDATA_REFERENCE_KIT")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        dump = kit / "dump" / WITH_TEMPLATES
        extract, extract_mlperf = measure_extraction_rate(dump), measure_extraction_rate(dump, "mlperf")
        segment = measure_rate(copy_kit_files(place), "mlperf")
        part = place / "part"
        text = corpus.make_long_text(PART_MB * 1_000_000)
        part.write_bytes(text)
        making = run_create(part, place / "shards", "native").cpu
        shard_bytes = (place / "shards" / "part.tfrecord").stat().st_size
    documents = load_tokenizer(str(corpus.find_vocabulary()), "mlperf", True, None).encode([text], ["part"])
    records = sort_documents(documents, "part").records
    shuffling = measure.measure_best_cpu(
        lambda: gather_documents([sort_documents(documents, "part").records], wide=False)
    )
    return Rates(
        extract=extract,
        extract_mlperf=extract_mlperf,
        segment=segment,
        create=shard_bytes / 1e6 / making,
        shuffle=len(text) / 1e6 / shuffling,
        shuffled_per_text=len(records) / len(text),
    )


def list_stages(rates: Rates, corpus: CorpusSize) -> list[tuple[str, float, float, float]]:
    """Return for each stage its name, its CPU hours, the GB it writes, and the GB it moves in a global
    shuffle.
    """
    text, shards = corpus.text_mb, corpus.text_mb * SHARDS_PER_TEXT
    records = text * rates.shuffled_per_text
    xml = [("extract", corpus.xml_mb / rates.extract, text, 0.0)] if corpus.xml_mb else []
    rows = [
        *xml,
        ("segment", text / rates.segment, text, text),
        ("create", shards / rates.create, shards, 0.0),
        ("global shuffle, beside create", text / rates.shuffle, records, records),
    ]
    return [(name, seconds / 3600, out / 1e3, moved / 1e3) for name, seconds, out, moved in rows]


def main() -> None:
    """Print the measured speeds and the tables of all corpora."""
    rates = measure_rates()
    print(
        f"MB a CPU second: extract {rates.extract:.1f} (mlperf {rates.extract_mlperf:.1f}), "
        f"segment {rates.segment:.0f}, "
        f"global shuffle {rates.shuffle:.0f} of text; create {rates.create:.0f} of shards, "
        f"{SHARDS_PER_TEXT:.1f} bytes for a byte of text; {rates.shuffled_per_text:.2f} to shuffle for one"
    )
    for wanted in CORPORA:
        print_corpus(rates, wanted)


def print_corpus(rates: Rates, wanted: CorpusSize) -> None:
    """Print the tables of a corpus: the cost of each stage on one machine, and of all stages on Dataflow.

    wanted: the corpus.
    """
    print(f"\n{wanted.name}")
    print(f"{'stage':<32}{'CPU h':>9}{'GB out':>9}{'shuffled':>10}{'h, 16 cores':>13}{'h, disk':>9}")
    cpu_hours = shuffled = machine_hours = 0.0
    for name, cpu, out, moved in list_stages(rates, wanted):
        disk = out * 1e3 / DISK_MB_S / 3600
        print(f"{name:<32}{cpu:9.2f}{out:9.0f}{moved:10.0f}{cpu / CORES:13.2f}{disk:9.2f}")
        machine_hours += max(cpu / CORES, disk)
        shuffled += moved
        cpu_hours += cpu
    print(f"one machine: {machine_hours:.2f} h, {machine_hours * MACHINE_DOLLARS_HOUR:.2f} dollars")
    vcpu_hours = cpu_hours / VCPU_OF_CORE + VCPUS * DATAFLOW_START_HOURS
    hours = (cpu_hours / VCPU_OF_CORE) / VCPUS + DATAFLOW_START_HOURS
    moving = shuffled * SHUFFLE_DOLLARS_GB
    money = vcpu_hours * VCPU_DOLLARS_HOUR + moving
    shards_gb = wanted.text_mb * SHARDS_PER_TEXT / 1e3
    print(
        f"Dataflow, {VCPUS} vCPUs: {hours:.2f} h, {money:.2f} dollars, {moving:.2f} of them for the "
        f"shuffle; "
        f"keeping the shards: {shards_gb * STORE_DOLLARS_GB_MONTH:.2f} a month"
    )


if __name__ == "__main__":
    main()
