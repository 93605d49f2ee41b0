"""Configuration sections of the data: which datasets to read, and how examples are put into the rows of a
batch.
"""

from dataclasses import dataclass

from bertdata.config.declared import setting
from bertdata.config.settings import require
from bertdata.io.storage import is_remote
from trainer.config.sections.section import Section, declare_common_key


@dataclass(frozen=True, kw_only=True)
class DataSection(Section):
    """Keys about the datasets for training and evaluation."""

    train_data: str | None = declare_common_key(
        None,
        "dataset directory, or files, to train on. Several datasets: A+B, or repeat the flag. Datasets "
        "mixed by weight: A*0.7+B*0.3",
        phases=True,
    )
    eval_data: str | None = declare_common_key(
        None,
        "dataset directory, or files, to evaluate on. Several datasets: A+B, or repeat the flag",
        phases=True,
    )
    unverified: bool = setting(False, "accept data without a manifest, as other programs write it")
    generated_data: bool = declare_common_key(
        False, "train on random examples instead of a dataset, for trying out speed"
    )
    objective: str | None = setting(
        None,
        "training objective; needed to load your own, package.module:NAME (default: the data's; bert "
        "without data)",
    )
    max_seq_length: int | None = setting(
        None,
        "largest number of token ids in an example (default: the dataset's)",
        least=5,
        most=65535,
        common=True,
        by_phase=True,
    )
    max_predictions_per_seq: int | None = setting(
        None,
        "most masked positions in an example (default: the dataset's)",
        least=1,
        by_phase=True,
    )
    open_files: int | str = setting(
        "auto",
        "number of files read at the same time, each whole; auto: up to 8 files are read whole, and up to "
        "512 of more files at the same time in chunks, so that of several machines each reads a part of the "
        "files; the order of the examples depends on it",
        least=1,
        other_names=["lanes"],
    )
    cache_dir: str | None = setting(
        None,
        "directory on a local disk for copies of data files at a URL (s3://, gs://). The workers of a "
        "machine share it, so that a machine downloads each file once, before it is needed",
    )
    cache_size: float | None = setting(
        None,
        "GB that all copies in cache_dir may take; the copies that are needed latest are removed for others "
        "(default: most of the free room of the disk)",
        above=0,
    )
    token_budget: int | None = declare_common_key(
        None,
        "pad each flat micro-batch (examples joined end to end, without padded rows) to a multiple of this "
        "many tokens (default: from batch_size and the lengths)",
        least=1,
        by_phase=True,
    )
    seed: int = declare_common_key(
        42, "random seed of initial weights, dropout and the order of the examples", least=0, most=4294967295
    )

    def __post_init__(self) -> None:
        require(
            not isinstance(self.open_files, str) or self.open_files == "auto",
            f"open_files is {self.open_files!r}, expected a number of files, or auto",
        )
        require(
            self.cache_dir is None or not is_remote(self.cache_dir),
            f"cache_dir is {self.cache_dir}, expected a directory on this machine",
        )
        super().__post_init__()

    def list_idle_keys(self) -> list[str]:
        """Return the key that has no effect without cache_dir."""
        return ["cache_size"] if self.cache_dir is None else []


@dataclass(frozen=True, kw_only=True)
class LoadingSection(Section):
    """Keys about the rows of batches. Examples can be padded, drawn from bins of similar length, or packed
    together.
    """

    rows: bool = declare_common_key(
        False,
        "pad each example to a row of equal length, instead of joining the examples of a batch without "
        "padding (a flat batch). The rows of a packed dataset stay as they are",
    )
    bins: int | None = declare_common_key(
        None,
        "group examples into at most this many bins of similar length, chosen for the least padding "
        "(default: no bins)",
        least=2,
        most=65535,
        by_phase=True,
    )
    pack_on_load: bool = declare_common_key(
        False,
        "while loading, put several examples into each row of max_seq_length tokens. The next pack_window "
        "examples are put into rows together, each into the fullest row that has room for it",
        by_phase=True,
    )
    pack_window: int = setting(
        8192, "number of examples that pack_on_load packs at a time", least=1, most=1048576
    )
    sequences_per_row: int = setting(16, "most examples that pack_on_load puts into a row", least=1, most=255)
    packed_accumulation: str = setting(
        "sequences",
        "what batch_size and accumulation count with packed rows: sequences, so that an update has fewer "
        "rows, or rows",
        ("sequences", "rows"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require(not (self.bins and self.pack_on_load), "bins and pack_on_load cannot be used together")

    def list_idle_keys(self) -> list[str]:
        """Return the keys that have no effect without pack_on_load."""
        return [] if self.pack_on_load else ["pack_window", "sequences_per_row"]
