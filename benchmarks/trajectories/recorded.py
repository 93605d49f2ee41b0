"""A recorded training run of an original program: its settings, the order of its examples, and its losses."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bertdata.errors import InputError

_REFERENCE = re.compile(r"^as ([\w.-]+)")
"""Pattern of the words ``as NAME ...`` at the start of a text in a run's file.

These words stand for the text that the run NAME has at the same place.
"""


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """A recorded training run, as a file of the reference kit stores it.

    original: description of the program that was run.
    settings: the program's flags, or words such as ``lr 5e-4``.
    examples: file with the examples that the run was trained on.
    micro_batches: for each micro-batch in the order of training, the indices of its examples in that file.
    in_update: number of micro-batches of an update.
    losses: loss of each micro-batch, computed before its update.
    rates: learning rate at each micro-batch. None if it was not recorded.
    """

    name: str
    original: str
    settings: str
    examples: Path
    micro_batches: Sequence[Sequence[int]]
    in_update: int
    losses: Sequence[float]
    rates: Sequence[float] | None

    @property
    def updates(self) -> int:
        """Number of updates that were made.

        The recorded order may contain further examples, which were not used.
        """
        return len(self.losses) // self.in_update

    @property
    def update_losses(self) -> list[float]:
        """For each update, the mean loss of its micro-batches."""
        found = np.reshape(np.asarray(self.losses)[: self.updates * self.in_update], (-1, self.in_update))
        return [float(value) for value in found.mean(axis=1)]

    @cached_property
    def columns(self) -> dict[str, Any]:
        """The examples as arrays, by the name of the column."""
        with np.load(self.examples) as stored:
            return dict(stored)

    @property
    def task(self) -> str:
        """Name of the training task. It is recognised by the columns of the examples."""
        if "answer_starts" in self.columns:
            return "squad"
        return "classification" if "label_ids" in self.columns else "pretraining"

    @property
    def clips_whole(self) -> bool:
        """True if the original program was changed to clip by the norm of all gradients together."""
        return "norm of summed rows" in self.original

    @property
    def is_packed(self) -> bool:
        """True if each micro-batch is a packed row (a row of several examples) of ModernBERT's loader."""
        return self.kind == "modernbert" and "rows of" in self.settings

    @property
    def kind(self) -> str:
        """Type of the model, under which the kit stores its first weights.

        It is recognised by the description of the program.
        """
        words = f"{self.name} {self.original}".lower()
        return next((kind for kind in ("modernbert", "roberta") if kind in words), "bert")

    def number(self, pattern: str, default: float | None = None) -> float:
        """Return the number that follows a pattern in the settings.

        Raises InputError if the settings have no such number and there is no default.
        """
        found = re.search(rf"\b{pattern}[ =]*([-+.\de]*\d)", self.settings)
        if found:
            return float(found[1])
        if default is None:
            raise InputError(f"{self.name}: its settings name no {pattern}: {self.settings}")
        return default


def read_run(path: Path, root: Path) -> RecordedRun:
    """Read the file of a recorded run.

    root: directory of the examples and first weights.
    """
    values = json.loads(path.read_text())
    return RecordedRun(
        name=path.stem,
        original=_resolve_text(path, "original"),
        settings=_resolve_text(path, "settings"),
        examples=root / values["examples"],
        micro_batches=values["micro_batches"],
        in_update=values["micro_batches_an_update"],
        losses=values["losses"],
        rates=values.get("rates"),
    )


def _resolve_text(path: Path, key: str) -> str:
    """Return the text of a key in a run's file.

    If the text starts with ``as NAME``, these words are replaced by the text of the same key in the run NAME.
    """
    values = json.loads(path.read_text())
    text = str(values[key])
    named = _REFERENCE.match(str(values["original"])) or _REFERENCE.match(str(values["settings"]))
    model = path.parent / f"{named[1]}.json" if named else path
    return text if model == path or not model.exists() else f"{text}; {_resolve_text(model, key)}"
