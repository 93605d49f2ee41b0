"""Sections of the data: the datasets, and the form of the rows that are read."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from bertdata.config.settings import check
from trainer.config.sections.section import Section, shown


@dataclass(frozen=True, kw_only=True)
class DataSection(Section):
    """Datasets to train and to evaluate on, and the order and form of their examples."""

    train_data: str | None = shown(
        None,
        "dataset directories, or files, to train on; several: A+B, or the flag repeated; mixed: A*0.7+B*0.3",
        phases=True,
    )
    eval_data: str | None = shown(
        None,
        "dataset directories, or files, to evaluate on; several are united: A+B, or the flag repeated",
        phases=True,
    )
    unverified: bool = setting(False, "accept data without a manifest, as other tools write it")
    generated_data: bool = shown(False, "train on random examples that the host generates")
    objective: str | None = setting(
        None, "objective of the examples; loads one of your own (default: the data's, without data bert)"
    )
    max_seq_length: int | None = setting(
        None, "length of an example in ids (default: the dataset's)", least=5, most=65535, by_phase=True
    )
    max_predictions_per_seq: int | None = setting(
        None,
        "largest number of masked positions in an example (default: the dataset's)",
        least=1,
        by_phase=True,
    )
    open_files: int = setting(
        8,
        "files read at the same time; the order of the examples depends on it",
        least=1,
        older_names=["lanes"],
    )
    token_budget: int | None = shown(
        None,
        "tokens that a flat micro-batch is padded to a multiple of (default: from batch_size and lengths)",
        least=1,
        by_phase=True,
    )
    seed: int = shown(
        42, "seed of initial weights, dropout and the order of the examples", least=0, most=4294967295
    )


@dataclass(frozen=True, kw_only=True)
class LoadingSection(Section):
    """Rows of another form, or made of other examples, than the stored ones."""

    rows: bool = shown(False, "batches of padded rows, one example or pack a row, instead of flat batches")
    bins: int | None = shown(
        None,
        "length bins: neighbouring micro-batches come from one of at most so many, cut where rows are "
        "padded least (default: none)",
        least=2,
        most=65535,
        by_phase=True,
    )
    pack_on_load: bool = shown(
        False,
        "fill each row of max_seq_length tokens with several examples while they are loaded: the next "
        "pack_window examples of the order, by best fit",
        by_phase=True,
    )
    pack_window: int = setting(8192, "examples that pack_on_load packs together", least=1, most=1048576)
    sequences_per_row: int = setting(
        16, "largest number of examples in a row of pack_on_load", least=1, most=255
    )
    packed_accumulation: str = setting(
        "sequences",
        "with packed rows an update has as many sequences as batch_size and accumulation ask for, in "
        "fewer rows (sequences), or as many rows (rows)",
        ("sequences", "rows"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check(not (self.bins and self.pack_on_load), "bins and pack_on_load cannot be used together")

    def idle(self) -> list[str]:
        """The keys that count for packing at load, where there is none."""
        return [] if self.pack_on_load else ["pack_window", "sequences_per_row"]
