"""Section of the data: datasets, sizes of an example, form of a batch, order."""

from dataclasses import dataclass

from trainer.config.section import Section, check


@dataclass(frozen=True, kw_only=True)
class DataSection(Section):
    """Datasets to train and to evaluate on, and the order and form of their examples."""

    train_data: str | None = None  # paths, separated by commas
    eval_data: str | None = None
    unverified: bool = False  # accept data without a manifest
    generated_data: bool = False
    max_seq_length: int | None = None  # ids; None: the dataset's
    max_predictions_per_seq: int | None = None  # masked slots; None: the dataset's
    open_files: int = 8  # the order of the examples depends on it
    token_budget: int | None = None  # tokens
    rows: bool = False
    bins: int | None = None
    pack_on_load: bool = False
    pack_window: int = 8192  # examples
    sequences_per_row: int = 16
    seed: int = 42  # of initial weights, dropout and order

    def __post_init__(self) -> None:
        super().__post_init__()
        check(not (self.bins and self.pack_on_load), "bins and pack_on_load cannot be used together")

    def order(self, update: str) -> str:
        """The rows that the order of the training deals: a position belongs to one kind of them.

        update: its micro-batches in words, as an order from bins depends on them.
        """
        if self.bins is not None:
            return f"from {self.bins} length bins of least padding, updates of {update}"
        if not self.pack_on_load:
            return "as stored"
        return f"packed at load, {self.pack_window} examples together, at most {self.sequences_per_row} a row"

    def idle(self) -> list[str]:
        """The keys that count for packing at load only, where it is off."""
        return [] if self.pack_on_load else ["pack_window", "sequences_per_row"]
