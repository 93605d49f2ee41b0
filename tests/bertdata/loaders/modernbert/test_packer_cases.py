"""ModernBERT's loader beside the original's own batches of the kit's text: all cases, all epochs."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertdata.loaders.modernbert.epoch import find_order
from bertdata.loaders.modernbert.loader import ModernBertLoader
from bertdata.loaders.modernbert.settings import ModernBertSettings, TokenWarmup
from tests.support.listed_sequences import ListedSequences

CASES = (
    "eval__len128__b64__m8__seed42",
    "eval__len32__b8__m4__seed7",
    "eval__len128__b64__m8__seed42__p15__noshuffle",
    "eval__len64__b48__m4__seed17__warmup",
    "eval__len256__b32__m2__seed42__buffer96",
)
KEYS = ("input_ids", "labels", "cu_seqlens", "max_seqlen", "attention_mask")
PADDING, MASK = 3070, 3071


@pytest.fixture(scope="session")
def oracles(kit: Path) -> dict[str, Any]:
    path = kit / "encoders" / "modernbert" / "packer.json"
    if not path.is_file():
        pytest.skip("the kit has no oracles for encoders")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.fixture(scope="session")
def lines(kit: Path, oracles: dict[str, Any]) -> ListedSequences:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(kit / "encoders" / "tokenizers" / "bpe-modernbert.json"))
    rows = [row for row in (kit / "results" / "eval.txt").read_text("utf-8").splitlines() if row]
    cls, sep = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    encoded = tokenizer.encode_batch(rows, add_special_tokens=False)
    return ListedSequences([[cls, *found.ids, sep] for found in encoded])


def settings_of(given: dict[str, Any]) -> ModernBertSettings:
    taken = (
        "max_seq_len",
        "batch_size",
        "micro_batch_size",
        "mask_prob",
        "drop_last",
        "shuffle",
        "buffer_size",
    )
    warmup = given["warmup"] and TokenWarmup(sequences=given["warmup"][0], tokens=given["warmup"][1])
    seeds = {"order_seed": given["seed"], "mask_seed": given["seed"]}
    return ModernBertSettings(**{name: given[name] for name in taken}, **seeds, warmup=warmup)


def as_lists(values: Any) -> Any:
    return values.tolist() if isinstance(values, np.ndarray) else list(map(as_lists, values))


def plain(batch: dict[str, Any]) -> dict[str, Any]:
    rows = {key: batch[key] for key in KEYS if key != "max_seqlen"}
    return {key: as_lists(value) for key, value in rows.items()} | {"max_seqlen": batch["max_seqlen"]}


def md5_of(rows: Iterable[Any]) -> str:
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def epochs_of(loader: ModernBertLoader, counts: list[int]) -> Iterator[list[dict[str, Any]]]:
    for count in counts:
        yield [plain(next(loader)) for _ in range(count)]


def check_order(order: Any, wanted: dict[str, Any]) -> None:
    assert order[:8].tolist() == wanted["order_first"]
    digest = hashlib.md5(order.astype("<i8").tobytes(), usedforsecurity=False).hexdigest()
    assert digest == wanted["order_md5"]


def check_epoch(batches: list[dict[str, Any]], wanted: dict[str, Any]) -> None:
    assert {key: md5_of(batch[key] for batch in batches) for key in KEYS} == wanted["md5"]
    rows = [row for batch in batches for row in batch["input_ids"]]
    counted = {
        "rows": len(rows),
        "cells": sum(map(len, rows)),
        "tokens": sum(sum(row) for batch in batches for row in batch["attention_mask"]),
        "targets": sum(id != -100 for batch in batches for row in batch["labels"] for id in row),
        "spans": sum(len(row) - 1 for batch in batches for row in batch["cu_seqlens"]),
    }
    assert counted == {name: wanted[name] for name in counted}
    for batch, example in zip(batches, wanted.get("examples", []), strict=False):
        assert batch == example


def test_the_ids_are_those_that_the_original_read(lines, kit):
    wanted = json.loads((kit / "encoders" / "ids.json").read_text())["eval__M"]
    assert (len(lines.rows), sum(map(len, lines.rows))) == (wanted["sequences"], wanted["tokens"])
    assert md5_of(lines.rows) == wanted["md5"]


def test_every_case_of_the_kit_is_named(oracles):
    assert set(oracles) == set(CASES)


@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("name", CASES)
def test_every_batch_of_every_epoch_is_the_originals(name, engine, lines, oracles):
    case = oracles[name]
    settings, epochs = settings_of(case["settings"]), case["epochs"]
    loader = ModernBertLoader(lines, settings, mask_id=MASK, padding_id=PADDING, engine=engine)
    made = epochs_of(loader, [wanted["batches"] for wanted in epochs])
    for batches, wanted in zip(made, epochs, strict=True):
        check_order(find_order(len(lines.rows), wanted["epoch"], settings, engine), wanted)
        check_epoch(batches, wanted)
    after = next(loader)["input_ids"].tolist()
    if (
        settings.warmup is None
    ):  # the epoch ends where the original's does: the next batch is the next epoch's
        others = ModernBertLoader(
            lines, settings, mask_id=MASK, padding_id=PADDING, epoch=len(epochs), engine=engine
        )
        assert next(others)["input_ids"].tolist() == after


@pytest.mark.parametrize("name", CASES)
def test_the_sequences_read_and_emitted_are_as_many_as_the_originals(name, lines, oracles):
    case = oracles[name]
    loader = ModernBertLoader(lines, settings_of(case["settings"]), mask_id=MASK, padding_id=PADDING)
    for wanted in case["epochs"]:
        emitted = 0
        for _ in range(wanted["batches"]):
            batch = next(loader)
            padded = sum(not row[-1] for row in batch["attention_mask"])
            emitted += sum(len(row) - 1 for row in batch["cu_seqlens"]) - padded
        assert emitted == wanted["emitted"]
        assert loader.state_dict()["taken"] == wanted["consumed"]
