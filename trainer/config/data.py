"""Section of the data: datasets, sizes of an example, form of a batch, order."""

from dataclasses import dataclass

from bertdata.config.declared import setting
from trainer.config.section import Section, shown


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
