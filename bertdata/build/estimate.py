"""Estimate of the output size and the time of a run, for ``--dry-run``.

A sample of the text is turned into examples to measure the speed. The examples are then thrown away.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from bertdata.build.dry_run import Preview
from bertdata.build.shard_task import Target, TaskPlan
from bertdata.build.warnings import check_documents
from bertdata.errors import DataError
from bertdata.examples.objectives import find_objective
from bertdata.io import storage
from bertdata.io.file_check import HashingSink
from bertdata.io.terminal import format_duration
from bertdata.records import Documents
from bertdata.shards.write import write_examples
from bertdata.tokens.load import tokenizer_of, vocabulary_of

SMALLEST_BYTES = 1 << 16
LARGEST_BYTES = 1 << 24
ENOUGH_SECONDS = 0.5
"""The sample of text is doubled until creating its examples takes at least this many seconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """Estimated size and time of the shards that a run would write.

    output_bytes: estimated size of each dataset in bytes, by its directory.
    seconds: estimated time if a single process does all the work.
    """

    output_bytes: dict[str, int]
    seconds: float
    shards: int
    sample_bytes: int
    sample_seconds: float
    sample_part: str

    def lines(self, workers: int | None) -> list[str]:
        """Return the lines of text that tell the user the estimate.

        workers: number of processes. None if the number is not known. The time is then given for a single
            core.
        """
        used = min(workers, self.shards) if workers else 1
        processes = f"{used} worker{'s' if used > 1 else ''}" if workers else "one core"
        return [
            *(f"{place}: about {_describe_size(size)} to write" for place, size in self.output_bytes.items()),
            f"about {format_duration(max(1.0, self.seconds / used))} with {processes}; estimated from the "
            f"first {self.sample_bytes} bytes of {self.sample_part}, "
            f"which took {self.sample_seconds:.2f} s "
            "here",
        ]


def format_estimate(
    plan: TaskPlan, parts: Sequence[str], previews: Sequence[Preview], workers: int | None
) -> list[str]:
    """Estimate a run and return the lines of text that tell the user the estimate.

    The result is empty if no shard must be written.

    workers: number of processes. None if the number is not known. The time is then given for a single core.
    """
    if all(one.kept == len(one.shards) for one in previews):
        return []
    found = estimate_run(plan, parts, previews)
    return [found] if isinstance(found, str) else found.lines(workers)


def estimate_run(plan: TaskPlan, parts: Sequence[str], previews: Sequence[Preview]) -> Estimate | str:
    """Return the estimate for the shards that must be written, or a text that says why there is none."""
    wanted = {one.directory: one.bytes_to_write for one in previews if one.bytes_to_write}
    targets = [target for target in plan.targets if target.dataset.directory in wanted]
    if not targets:
        return "no estimate: the text is not there yet"
    part = next(path for path in parts if storage.exists(path))
    try:
        sample = _grow_sample(plan, targets, part)
    except DataError as error:
        return f"no estimate: {error}"
    # Scale the sizes and times of the sample up to the size of all text. Text is tokenised once for all
    # datasets together, but examples are created separately for each dataset.
    scales = {place: size / sample.text_bytes for place, size in wanted.items()}
    return Estimate(
        output_bytes={place: round(sample.output_bytes[place] * scale) for place, scale in scales.items()},
        seconds=sample.loading * max(scales.values())
        + sum(sample.making[place] * scale for place, scale in scales.items()),
        shards=max(len(one.shards) - one.kept for one in previews),
        sample_bytes=sample.text_bytes,
        sample_seconds=sample.loading + sum(sample.making.values()),
        sample_part=part,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sample:
    """Sizes and times that were measured while examples of a sample of text were created.

    loading: seconds that reading and tokenising the text took.
    output_bytes: size of the examples in bytes, by dataset directory.
    making: seconds that creating the examples took, by dataset directory.
    """

    text_bytes: int
    loading: float
    output_bytes: dict[str, int]
    making: dict[str, float]

    @property
    def seconds(self) -> float:
        """Seconds that tokenising the sample and creating the examples of all datasets took."""
        return self.loading + sum(self.making.values())


def _grow_sample(plan: TaskPlan, targets: Sequence[Target], part: str) -> _Sample:
    """Double the sample until it takes ENOUGH_SECONDS. Return the measurement of the last sample.

    The very first measurement is not used, because it includes the time for loading libraries and tables.
    """
    size = storage.read_size(part)
    with storage.open_input(part) as file:
        text = file.read(SMALLEST_BYTES)
        _measure_sample(plan, targets, part, _cut_documents(text, size))
        while True:
            sample = _measure_sample(plan, targets, part, _cut_documents(text, size))
            if sample.seconds >= ENOUGH_SECONDS or len(text) >= min(size, LARGEST_BYTES):
                return sample
            text += file.read(len(text))


def _cut_documents(text: bytes, size: int) -> bytes:
    """Return the text up to its last blank line, so that it ends with a complete document.

    If there is no blank line, the text is cut after its last line. A text that already is the complete part
    is returned unchanged.

    size: size of the complete part in bytes.
    """
    for end in (b"\n\n", b"\n") if len(text) < size else ():
        if (place := text.rfind(end)) > 0:
            return text[: place + 1]
    return text


def _measure_sample(plan: TaskPlan, targets: Sequence[Target], part: str, text: bytes) -> _Sample:
    """Tokenise the text, create its examples for each dataset, and return the measured sizes and times."""
    start = perf_counter()
    documents = tokenizer_of(plan.tokenizer, plan.engine).encode([text], [part])
    check_documents(documents, part)
    loading = perf_counter() - start
    output, making = {}, {}
    for target in targets:
        start = perf_counter()
        output[target.dataset.directory] = _count_bytes(plan, target, documents)
        making[target.dataset.directory] = perf_counter() - start
    return _Sample(text_bytes=len(text), loading=loading, output_bytes=output, making=making)


def _count_bytes(plan: TaskPlan, target: Target, documents: Documents) -> int:
    """Create the documents' examples, write them as a shard in memory, and return the size of the shard in
    bytes.
    """
    settings = target.settings
    vocabulary = vocabulary_of(plan.tokenizer)
    examples = find_objective(settings.objective).make(documents, vocabulary, settings, plan.engine)
    sink = HashingSink(len)
    write_examples(examples, settings, sink, engine=plan.engine)
    return sink.bytes


def _describe_size(size: float) -> str:
    """Return a number of bytes with its unit: ``1.23 MB``."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}" if unit != "bytes" else f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
