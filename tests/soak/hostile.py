"""Damaged shards and senseless kernel calls (``python -m tests.soak.hostile``).

Shards of the three containers, remasked and packed ones too, are damaged in six ways and read, stated
and verified.
Each must end in the package's own error, or give what the undamaged file gives; no other exception, no
crash, nothing slower than ten seconds or larger than 200 MiB more. Kernels are called with values of all
sorts, in processes of their own that survive no crash; each call must end in a result or in one of the
errors that a binding may raise. Prints a line for each kind; exit status 1 where anything is wrong.
"""

import argparse
import io
import multiprocessing
import random
import resource
import struct
import sys
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from bertdata._native import kernels
from bertdata.errors import BertDataError
from bertdata.examples.bert.batch import BertBatch, BertExample
from bertdata.examples.bert.objective import BERT
from bertdata.records import ShardLayout, Vocabulary
from bertdata.shards.containers import make_reader
from bertdata.shards.crc32c import compute_masked_crc32c
from bertdata.shards.hdf5 import Hdf5Reader, Hdf5Writer
from bertdata.shards.lddl import LddlReader, LddlWriter
from bertdata.shards.packed.layouts import LAYOUTS, make_pack_writer
from bertdata.shards.packed.packs import PackBatch
from bertdata.shards.parquet import ParquetReader, ParquetWriter
from bertdata.shards.tfrecord import TFRecordReader, TFRecordWriter, read_canonical_blocks
from bertdata.shards.varlength import VarlengthReader, VarlengthWriter

SLOWEST_SECONDS = 10.0
MOST_KIB = 200 * 1024
CALLS_A_PROCESS = 20_000
PLAIN = ShardLayout(max_seq_length=16, max_predictions_per_seq=3)
VOCABULARY = Vocabulary(
    name="words",
    md5="0" * 32,
    words=[f"w{number}" for number in range(400)],
    continues_word=bytes(400),
    replacements=tuple(range(400)),
    cls=5,
    sep=6,
    mask=7,
)
REMASKED = ShardLayout(max_seq_length=16, max_predictions_per_seq=3, remask=True)

Read = Callable[[bytes], object]


def batch(rows: int, seed: int) -> BertBatch:
    stream = random.Random(seed)
    made = []
    for _ in range(rows):
        length = stream.randint(6, 13)
        positions = sorted(stream.sample(range(1, length), stream.randint(0, 3)))
        made.append(
            BertExample(
                ids=[stream.randint(1, 300) for _ in range(length)],
                first_length=stream.randint(1, length),
                positions=positions,
                labels=[stream.randint(1, 300) for _ in positions],
                next_label=stream.randint(0, 1),
            )
        )
    return BertBatch.of(made, wide=False)


def written(writer: Any, layout: ShardLayout, rows: int = 40) -> bytes:
    sink = io.BytesIO()
    made = writer(sink, layout)
    made.write(batch(rows, 1))
    made.close()
    return sink.getvalue()


def packed(name: str, format: str) -> bytes:
    """The same examples, two a row."""
    sink, examples = io.BytesIO(), batch(40, 1)
    layout = replace(PLAIN, max_seq_length=32, packing=name, sequences_per_row=4)
    made = make_pack_writer(layout, format, sink)
    made.write(PackBatch(examples=examples, ends=array("I", range(2, 41, 2))))
    made.close()
    return sink.getvalue()


def examples_of(reader: Any) -> list[Any]:
    return [example for found in reader.batches(7) for example in found.examples()]


def lddl_pairs(rows: int) -> BertBatch:
    """The same examples as pairs, whose ids all have words."""
    pairs = []
    for example in batch(rows, 1).examples():
        ids = [5, *example.ids[1:-1], 6]
        first = min(max(example.first_length, 2), len(ids) - 1)
        ids[first - 1] = 6
        pairs.append(replace(example, ids=ids, first_length=first))
    return BertBatch.of(pairs, wide=False)


def write_lddl() -> bytes:
    sink = io.BytesIO()
    made = LddlWriter(sink, PLAIN, VOCABULARY)
    made.write(lddl_pairs(40))
    made.close()
    return sink.getvalue()


def read_lddl(data: bytes) -> object:
    return examples_of(LddlReader(io.BytesIO(data), "shard", VOCABULARY))


def read_with(reader: Any) -> Read:
    return lambda data: examples_of(reader(io.BytesIO(data), "shard"))


def canonical(data: bytes) -> object:
    return b"".join(block for block, _ in read_canonical_blocks(io.BytesIO(data), "shard"))


SHARDS: dict[str, tuple[Callable[[], bytes], tuple[Read, ...]]] = {
    "tfrecord": (lambda: written(TFRecordWriter, PLAIN), (read_with(TFRecordReader), canonical)),
    "remasked": (lambda: written(TFRecordWriter, REMASKED), (read_with(TFRecordReader), canonical)),
    "hdf5": (lambda: written(Hdf5Writer, PLAIN), (read_with(Hdf5Reader),)),
    "parquet": (lambda: written(ParquetWriter, PLAIN), (read_with(ParquetReader),)),
    "nvidia-mlperf": (lambda: written(VarlengthWriter, PLAIN), (read_with(VarlengthReader),)),
    "lddl": (write_lddl, (read_lddl,)),
    **{
        f"{name} {format}": (partial(packed, name, format), (read_with(make_reader),))
        for name, layout in LAYOUTS.items()
        for format in layout.formats
    },
}


def flip(data: bytearray, stream: random.Random) -> bytes:
    for _ in range(stream.randint(1, 8)):
        data[stream.randrange(len(data))] ^= 1 << stream.randrange(8)
    return bytes(data)


def cut(data: bytearray, stream: random.Random) -> bytes:
    return bytes(data[: stream.randrange(len(data))])


def lose(data: bytearray, stream: random.Random) -> bytes:
    first = stream.randrange(len(data))
    del data[first : first + stream.randint(1, 200)]
    return bytes(data)


def repeat(data: bytearray, stream: random.Random) -> bytes:
    first = stream.randrange(len(data))
    return bytes(data[:first] + data[first : first + stream.randint(1, 400)] + data[first:])


def enlarge(data: bytearray, stream: random.Random) -> bytes:
    """A number somewhere in the file becomes a huge one."""
    size = stream.choice((2, 4, 8))
    first = stream.randrange(len(data) - size)
    value = stream.choice(((1 << 8 * size) - 1, 1 << (8 * size - 1), (1 << (8 * size - 2)) + 7))
    data[first : first + size] = value.to_bytes(size, "little")
    return bytes(data)


def forge(data: bytearray, stream: random.Random) -> bytes:
    """Change one payload of a TFRecord and recompute its checksums, or flip bits of other data."""
    frames, place = [], 0
    while place + 16 <= len(data):
        length = int.from_bytes(data[place : place + 8], "little")
        if place + 16 + length > len(data):
            break
        frames.append(bytearray(data[place + 12 : place + 12 + length]))
        place += 16 + length
    if not frames or place != len(data):
        return flip(data, stream)
    frame = stream.choice(frames)
    stream.choice((flip, cut, lose, repeat, enlarge))(frame, stream)
    return b"".join(framed(bytes(one)) for one in frames)


def framed(payload: bytes) -> bytes:
    length = struct.pack("<Q", len(payload))
    crcs = struct.pack("<I", compute_masked_crc32c(length)), struct.pack("<I", compute_masked_crc32c(payload))
    return length + crcs[0] + payload + crcs[1]


DAMAGES = (flip, cut, lose, repeat, enlarge, forge)
SEEN_BY_CHECKSUMS = dict.fromkeys(
    ("tfrecord", "remasked", "habana tfrecord", "graphcore tfrecord"), (flip, cut, enlarge)
)
"""Damages that a container finds by itself, but for the loss of whole records at the end; the others can
leave whole records out, or hold forged ones, which only the manifest's md5 finds."""


@contextmanager
def measured(wrong: list[str], what: str) -> Iterator[None]:
    start, peak = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    if (took := time.monotonic() - start) > SLOWEST_SECONDS:
        wrong.append(f"{what}: {took:.0f} s")
    if (grown := resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) > MOST_KIB:
        wrong.append(f"{what}: {grown // 1024} MiB more")


def damage_files(count: int, seed: int, channel: Connection) -> None:
    """Sends a name before each file, and (results, what is wrong) at the end."""
    results: Counter[str] = Counter()
    wrong: list[str] = []
    for kind, (make, readings) in SHARDS.items():
        whole = make()
        expected = [read(whole) for read in readings]
        for number in range(count // len(SHARDS)):
            stream = random.Random(f"{seed} {kind} {number}")
            damage = DAMAGES[number % len(DAMAGES)]
            data = damage(bytearray(whole), stream)
            what = f"{kind}, {damage.__name__} {number}"
            channel.send(what)
            for read, right in zip(readings, expected, strict=True):
                with measured(wrong, what):
                    try:
                        found = read(data)
                    except BertDataError:
                        results["refused"] += 1
                    except Exception as error:
                        wrong.append(f"{what}: {type(error).__name__}: {error}")
                    else:
                        same = found == right
                        results["as undamaged" if same else "other examples"] += 1
                        if (
                            not same
                            and damage in SEEN_BY_CHECKSUMS.get(kind, ())
                            and not is_shorter(found, right)
                        ):
                            wrong.append(f"{what}: other examples")
    channel.send((results, wrong))


def is_shorter(found: Any, right: Any) -> bool:
    """True for whole records that are the first of the undamaged ones: a file cut between two."""
    return len(found) < len(right) and right[: len(found)] == found


ODD: tuple[Callable[[random.Random], Any], ...] = (
    lambda stream: stream.choice(
        (0, 1, -1, 5, 1 << 16, 1 << 21, (1 << 32) - 1, 1 << 32, (1 << 64) - 1, 1 << 70)
    ),
    lambda stream: stream.choice((0.0, -1.0, 0.15, float("nan"), float("inf"), 1e308)),
    lambda stream: stream.randbytes(stream.randint(0, 60)),
    lambda stream: memoryview(stream.randbytes(stream.randint(0, 60)))[:: stream.choice((1, -1, 2))],
    lambda stream: array(
        stream.choice("BHIQbhiqfd"), [stream.randint(0, 60) for _ in range(stream.randint(0, 30))]
    ),
    lambda stream: array("I", sorted(stream.randint(0, 40) for _ in range(stream.randint(0, 9)))),
    lambda stream: array("H", [stream.randint(0, 40) for _ in range(stream.randint(0, 40))]),
    lambda stream: [stream.randint(0, 40) for _ in range(stream.randint(0, 5))],
    lambda stream: "".join(chr(stream.randint(1, 0x2FF)) for _ in range(stream.randint(0, 9))),
    lambda stream: stream.choice((None, True, [], "", b"", ("a", "b"))),
)


def odd(stream: random.Random) -> Any:
    return stream.choice(ODD)(stream)


def mostly(stream: random.Random, usual: Callable[[], Any]) -> Any:
    """The usual value, one time in eight an odd one."""
    return odd(stream) if stream.random() < 0.125 else usual()


def numbers(stream: random.Random, code: str, limit: int, longest: int) -> Any:
    return array(code, [stream.randrange(limit) for _ in range(stream.randint(0, longest))])


def offsets(stream: random.Random, end: int) -> Any:
    inner = sorted(stream.randint(0, end) for _ in range(stream.randint(0, 6)))
    return array("I", [*inner, end])


def call_examples(stream: random.Random) -> None:
    def some(usual: Any) -> Any:
        return mostly(stream, lambda: usual)

    rules = kernels.BertRules(
        max_seq_length=some(stream.randint(5, 40)),
        max_predictions=some(stream.randint(0, 5)),
        dupe_factor=stream.randint(0, 3),
        masked_lm_prob=some(stream.random()),
        short_seq_prob=some(stream.random()),
        whole_word_mask=stream.random() < 0.5,
        masks=stream.random() < 0.8,
        fills_predictions=stream.random() < 0.5,
        own_next_label=stream.randint(0, 1),
        cls=some(1),
        sep=some(2),
        mask=some(3),
        replacements=some(list(range(4, 40))),
        continues_word=some(bytes(stream.randint(0, 1) for _ in range(40))),
    )
    ids = numbers(stream, stream.choice("HI"), 40, 60)
    sentences = offsets(stream, len(ids))
    documents = offsets(stream, len(sentences))
    made = kernels.BertExamples(
        some(ids),
        some(sentences),
        some(documents),
        rules,
        some([stream.getrandbits(32)]),
        word_starts=some(stream.choice((None, stream.randbytes(len(ids))))),
        tells_words=stream.random() < 0.5,
    )
    for _ in range(3):
        made.batch(some(0), some(len(made)), some(stream.randint(1, 5)))


def call_masking(stream: random.Random) -> None:
    def some(usual: Any) -> Any:
        return mostly(stream, lambda: usual)

    lengths = [stream.randint(0, 9) for _ in range(stream.randint(0, 4))]
    count, most = len(lengths), stream.randint(0, 5)
    masker = kernels.DynamicMasker(
        most=some(most),
        mask=some(3),
        mask_limit=some(stream.getrandbits(33)),
        random_limit=some(stream.getrandbits(33)),
        replacements=some(list(range(40))),
        is_special=some(bytes(stream.randint(0, 1) for _ in range(40))),
        continues_word=some(bytes(stream.randint(0, 1) for _ in range(40))),
        whole_words=stream.random() < 0.5,
        draws_counts=stream.random() < 0.5,
    )
    masker.mask(
        ids=some(array("i", [stream.randrange(40) for _ in range(sum(lengths))])),
        starts=some(array("q", [sum(lengths[:number]) for number in range(count)])),
        lengths=some(array("i", lengths)),
        positions=some(array("i", [0] * (count * most))),
        labels=some(array("i", [0] * (count * most))),
        counts=some(array("i", [0] * count)),
        keys=some(array("Q", [stream.getrandbits(64) for _ in lengths])),
        numbers=some(array("Q", range(count))),
        rates=some(array("d", [1 - stream.random() for _ in lengths])),
        word_starts=some(stream.choice((None, stream.randbytes(sum(lengths))))),
    )


def call_format(stream: random.Random) -> None:
    layout = stream.choice((PLAIN, REMASKED))
    usual = BERT.record_format(layout)
    if stream.random() < 0.5:
        columns = [
            (
                stream.choice((1, 2, 4, 4, 4)),
                stream.randint(-1, 5),
                stream.random() < 0.3,
                stream.choice((300, 1 << 21)),
            )
            for _ in range(stream.randint(0, 7))
        ]
        fields = [
            (
                f"field {number}",
                stream.random() < 0.2,
                stream.randint(-1, 8),
                stream.randint(0, 7),
                stream.choice((0, 1, 3, 16, 1 << 30)),
                stream.choice((0, 5, 1 << 21)),
            )
            for number in range(stream.randint(0, 7))
        ]
        usual = kernels.RecordFormat(
            columns=columns,
            fields=fields,
            positions=stream.randint(-1, 6),
            labels=stream.randint(-1, 6),
            first_slot=stream.choice((0, 3, 17, 1 << 31)),
        )
    values = list(batch(stream.randint(0, 4), stream.getrandbits(16)).values())
    try:
        usual.encode([mostly(stream, lambda value=value: value) for value in values])
    finally:
        usual.decode(mostly(stream, lambda: flip(bytearray(WHOLE), stream)), mostly(stream, lambda: 9))


WHOLE = written(TFRecordWriter, PLAIN, rows=3)


def call_tokenizer(stream: random.Random) -> None:
    words = ["".join(stream.choice("ab#c[é") for _ in range(stream.randint(0, 5))) for _ in range(30)]
    tokenizer = kernels.Tokenizer(
        tokens=mostly(stream, lambda: words),
        ids=mostly(stream, lambda: list(range(len(words)))),
        unknown=mostly(stream, lambda: 0),
        lower_case=stream.random() < 0.5,
        strips_accents=stream.random() < 0.5,
        drops_unassigned=stream.random() < 0.5,
        keeps_special_tokens=stream.random() < 0.5,
        max_word_chars=mostly(stream, lambda: 100),
    )
    text = "".join(chr(stream.choice((10, 32, 97, 98, 35, 233, 0x130, 0x4E00, 0x1F600))) for _ in range(60))
    data = text.encode()
    tokenizer.tokenize(
        mostly(stream, lambda: flip(bytearray(data), stream) if stream.random() < 0.3 else data)
    )


def call_punkt(stream: random.Random) -> None:
    words = ["".join(stream.choice("ab.") for _ in range(stream.randint(0, 4))) for _ in range(9)]
    punkt = kernels.Punkt(
        abbreviations=mostly(stream, lambda: words),
        collocations=mostly(stream, lambda: [(words[0], words[1])]),
        sentence_starters=mostly(stream, lambda: words[:3]),
        contexts=mostly(stream, lambda: [(word, stream.choice((2, 6, 126))) for word in words]),
        variant=mostly(stream, lambda: stream.choice(("3.4.5", "3.10.0", "3.10.4"))),
    )
    text = "".join(stream.choice("aB .?!\n\"')-é\u3000") for _ in range(80))
    punkt.segment_lines(mostly(stream, text.encode), stream.random() < 0.5)
    punkt.split(mostly(stream, lambda: text))


def call_rest(stream: random.Random) -> None:
    kernels.crc32c(odd(stream))
    kernels.canonicalize(mostly(stream, lambda: forge(bytearray(WHOLE), stream)))
    kernels.find_frame_ends(mostly(stream, lambda: forge(bytearray(WHOLE), stream)), stream.randint(0, 9))
    random_numbers = kernels.RandomStream(odd(stream))
    random_numbers.below(odd(stream))
    random_numbers.shuffle(odd(stream))


CALLS = (call_examples, call_masking, call_format, call_tokenizer, call_punkt, call_rest)
ALLOWED = (ValueError, TypeError, OverflowError)
"""What a binding may raise; pybind11's own are TypeErrors, and OverflowErrors of numbers too large."""


def call_kernels(count: int, seed: int, channel: Connection) -> None:
    results: Counter[str] = Counter()
    wrong: list[str] = []
    for number in range(count):
        call = CALLS[number % len(CALLS)]
        channel.send(what := f"{call.__name__} {seed} {number}")
        with measured(wrong, what):
            try:
                call(random.Random(f"{seed} {number}"))
                results["done"] += 1
            except ALLOWED:
                results["refused"] += 1
            except Exception as error:
                wrong.append(f"{what}: {type(error).__name__}: {error}")
    channel.send((results, wrong))


def in_a_process(
    work: Callable[[int, int, Connection], None], count: int, seed: int
) -> tuple[Counter[str], list[str]]:
    """The results of the work. Where its process dies or hangs, the case under way counts as wrong."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=work, args=[count, seed, theirs])
    process.start()
    theirs.close()
    last = "the start"
    try:
        while True:
            if not ours.poll(6 * SLOWEST_SECONDS):
                process.kill()
                return Counter(), [f"{last}: hangs"]
            received = ours.recv()
            if not isinstance(received, str):
                return received
            last = received
    except EOFError:
        process.join()
        return Counter(), [f"{last}: the process died ({process.exitcode})"]
    finally:
        process.join()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=1200, help="damaged files (default: 1200)")
    parser.add_argument("--calls", type=int, default=100_000, help="calls of kernels (default: 100000)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    wrong: list[str] = []
    results, found = in_a_process(damage_files, args.files, args.seed)
    wrong += found
    print(f"damaged files: {args.files}, read {results.total()} times: {dict(results)}, {len(found)} wrong")
    called: Counter[str] = Counter()
    before = len(wrong)
    for first in range(0, args.calls, CALLS_A_PROCESS):
        count = min(CALLS_A_PROCESS, args.calls - first)
        results, found = in_a_process(call_kernels, count, args.seed + first)
        called += results
        wrong += found
    print(f"groups of kernel calls: {args.calls}: {dict(called)}, {len(wrong) - before} wrong")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
