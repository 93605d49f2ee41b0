"""Estimate of a run's output size and time.

A sample of the text is converted to measure the speed, and the result is thrown away.
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
"""The sample is doubled until its conversion takes this long."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """Estimated output size and time for the shards that must be written.

    output_bytes: estimated bytes of each dataset, by its directory.
    seconds: estimated time of a single process.
    """

    output_bytes: dict[str, int]
    seconds: float
    shards: int
    sample_bytes: int
    sample_seconds: float
    sample_part: str

    def lines(self, workers: int | None) -> list[str]:
        """Return the estimate as lines of text.

        workers: number of processes. None if it is not known, and the time is then for one core.
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
    """Return the estimate as lines of text. The result is empty if no shard must be written.

    workers: number of processes. None if it is not known, and the time is then for one core.
    """
    if all(one.kept == len(one.shards) for one in previews):
        return []
    found = estimate_run(plan, parts, previews)
    return [found] if isinstance(found, str) else found.lines(workers)


def estimate_run(plan: TaskPlan, parts: Sequence[str], previews: Sequence[Preview]) -> Estimate | str:
    """Return the estimate for the shards that must be written, or a text that says why there is none."""
    wanted = {one.directory: one.bytes_to_make for one in previews if one.bytes_to_make}
    targets = [target for target in plan.targets if target.dataset.directory in wanted]
    if not targets:
        return "no estimate: the text is not there yet"
    part = next(path for path in parts if storage.exists(path))
    try:
        sample = _grow_sample(plan, targets, part)
    except DataError as error:
        return f"no estimate: {error}"
    # Scale the sample's sizes and times up to all text. The text is tokenised once for all datasets, but
    # examples are created for each dataset.
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
    """Measurements of converting one sample of text.

    loading: seconds to read and tokenise the text.
    output_bytes, making: bytes and seconds per dataset directory.
    """

    text_bytes: int
    loading: float
    output_bytes: dict[str, int]
    making: dict[str, float]

    @property
    def seconds(self) -> float:
        """Time, in seconds, that tokenising the sample and creating all of its examples took."""
        return self.loading + sum(self.making.values())


def _grow_sample(plan: TaskPlan, targets: Sequence[Target], part: str) -> _Sample:
    """Double the sample until it takes ENOUGH_SECONDS, and return the last measurement.

    The very first measurement is dropped, because it includes loading libraries and tables.
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
    """Return the text up to its last blank line, else up to its last line end.

    size: bytes of the whole part.

    A complete part is returned unchanged.
    """
    for end in (b"\n\n", b"\n") if len(text) < size else ():
        if (place := text.rfind(end)) > 0:
            return text[: place + 1]
    return text


def _measure_sample(plan: TaskPlan, targets: Sequence[Target], part: str, text: bytes) -> _Sample:
    """Tokenise the text, create its examples for each dataset, and measure both."""
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
    """Write the documents' examples to memory, and return the size of this shard in bytes."""
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
