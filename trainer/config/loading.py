"""Section of loading: padded rows in the place of flat batches, length bins, packing at load."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from trainer.config.section import Section, check, shown


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
