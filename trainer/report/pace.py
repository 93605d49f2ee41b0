"""The pace of training: what so many updates did in so much time."""

from dataclasses import dataclass, field
from statistics import fmean

from trainer.report.log_records import StepRecord, Values


@dataclass(frozen=True, kw_only=True, slots=True)
class Cards:
    """The devices of a run: their number, and the operations a second that each could make at most."""

    devices: int = 1
    peak: float | None = None  # None: not known


@dataclass(kw_only=True, slots=True)
class Pace:
    """Sums over timed updates, and the rates that follow from them."""

    hardware: Cards
    seconds: list[float] = field(default_factory=list)
    sequences: int = 0
    tokens: int = 0
    operations: float = 0.0
    data_wait: float = 0.0

    def add(self, record: StepRecord) -> None:
        """Count an update."""
        self.seconds.append(record.seconds)
        self.sequences += record.sequences
        self.tokens += record.tokens
        self.operations += record.operations
        self.data_wait += record.data_wait

    @property
    def seconds_per_update(self) -> float:
        return fmean(self.seconds)

    def rates(self) -> Values:
        """The rates by name; none where no time was measured, and those of tokens where none were counted.

        tokens_per_second: real ones. tflops: 10^12 operations a second of one device, peak_share: their
        share of what it could make at most. data_wait_share: the share of the time spent waiting for data.
        """
        seconds = sum(self.seconds)
        if seconds <= 0:
            return {}
        found: Values = {"sequences_per_second": self.sequences / seconds}
        if self.tokens:
            rate = self.operations / seconds / self.hardware.devices
            found |= {"tokens_per_second": self.tokens / seconds, "tflops": rate / 1e12}
            if self.hardware.peak is not None:
                found["peak_share"] = rate / self.hardware.peak
            found["data_wait_share"] = self.data_wait / seconds
        return found
