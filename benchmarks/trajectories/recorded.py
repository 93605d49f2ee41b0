"""A recorded training of an original program: its settings, the order of its examples, what it lost."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bertdata.errors import InputError

_SAME = re.compile(r"^as ([\w.-]+)")
"""The beginning of a text that adds to that of another run."""


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """A training in the kit's form.

    original: the program in words. settings: its flags, or words such as ``lr 5e-4``. examples: the file of
    its examples. micro_batches: numbers of examples, in the order of training, ``in_update`` of them an
    update. losses: that of each micro-batch before its update. rates: one for each micro-batch.
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
        """The updates that were made: the order may go on behind them."""
        return len(self.losses) // self.in_update

    @property
    def update_losses(self) -> list[float]:
        """The mean loss of each update's micro-batches."""
        found = np.reshape(np.asarray(self.losses)[: self.updates * self.in_update], (-1, self.in_update))
        return [float(value) for value in found.mean(axis=1)]

    @cached_property
    def columns(self) -> dict[str, Any]:
        """The examples' arrays by name."""
        with np.load(self.examples) as stored:
            return dict(stored)

    @property
    def task(self) -> str:
        """The kind of learning, by the columns of the examples."""
        if "answer_starts" in self.columns:
            return "squad"
        return "classification" if "label_ids" in self.columns else "pretraining"

    @property
    def clips_whole(self) -> bool:
        """True where the original was changed, to clip by the norm of whole gradients."""
        return "norm of summed rows" in self.original

    @property
    def is_packed(self) -> bool:
        """True where a micro-batch is one row of ModernBERT's loader."""
        return self.kind == "modernbert" and "rows of" in self.settings

    @property
    def kind(self) -> str:
        """The kind of model, by the program's words: its first weights are of that kind."""
        words = f"{self.name} {self.original}".lower()
        return next((kind for kind in ("modernbert", "roberta") if kind in words), "bert")

    def number(self, pattern: str, default: float | None = None) -> float:
        """The number behind a pattern in the settings. InputError where there is none and no default."""
        found = re.search(rf"\b{pattern}[ =]*([-+.\de]*\d)", self.settings)
        if found:
            return float(found[1])
        if default is None:
            raise InputError(f"{self.name}: its settings name no {pattern}: {self.settings}")
        return default


def read_run(path: Path, root: Path) -> RecordedRun:
    """Read a run's file. root: the directory of its examples and first weights."""
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
    """Return a text of a run, and behind it that of the run which it, or its program, takes after."""
    values = json.loads(path.read_text())
    text = str(values[key])
    named = _SAME.match(str(values["original"])) or _SAME.match(str(values["settings"]))
    model = path.parent / f"{named[1]}.json" if named else path
    return text if model == path or not model.exists() else f"{text}; {_resolve_text(model, key)}"
