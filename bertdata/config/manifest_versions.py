"""Manifests of datasets as JSON, of this version of the format and of the one before.

Version 3 holds the settings in four records (``bertdata.config.dataset_settings``). Version 2 held them in
one object, with vocabulary, punkt and shuffle beside it, and the recipe of no recipe was another word. A
manifest of version 2 is read as one of version 3, and written as it was.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from bertdata.config.dataset_settings import WORDPIECE
from bertdata.io.manifest_file import check_schema, check_version, parse_json

DATASET_VERSION = 3
_BEFORE = 2
_REMADE = {
    1: "remove the directory and make it again: its shards get the same bytes",
}
"""Remedies for versions that are not read any more."""

_TOKENIZER = ("dialect", "lower_case")
_CONTAINER = (
    "format",
    "remask",
    "shuffled",
    "bin_size",
    "packing",
    "sequences_per_row",
    "packing_method",
    "packing_seed",
    "packing_plan",
)
"""Settings of version 2 by their record in version 3; all others are the objective's."""


class DatasetJson(NamedTuple):
    """A manifest in the form of version 3. version_2: as it was written, where that was version 2."""

    value: dict[str, Any]
    version_2: dict[str, Any] | None


def parse_dataset_json(data: bytes, where: str) -> DatasetJson:
    """The manifest's JSON, checked against ``schemas/manifest.json``. ManifestError for what does not fit."""
    written = parse_json(data, where)
    version = written.get("format_version", DATASET_VERSION)
    check_version(version, where, (_BEFORE, DATASET_VERSION), _REMADE)
    value = _of_version_2(written) if version == _BEFORE else written
    check_schema(value, where, "manifest")
    return DatasetJson(value, written if version == _BEFORE else None)


def settings_digest(settings: Mapping[str, Any]) -> str:
    """BLAKE2b of the settings' canonical JSON, 32 hexadecimal digits."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _of_version_2(written: dict[str, Any]) -> dict[str, Any]:
    """The manifest in the form of version 3, as far as it is one: its schema says what does not fit."""
    moved = ("punkt", "vocabulary", "shuffle", "num_shards")
    value = {name: item for name, item in written.items() if name not in moved}
    value["format_version"] = DATASET_VERSION
    settings = written.get("settings")
    if isinstance(settings, dict):
        value["settings"] = _records(written, settings)
        if value.get("recipe") in ("unverified", settings.get("objective")):  # words for none
            value["recipe"] = None
    return value


def _records(written: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings of a manifest of version 2, and what stood beside them, in records."""
    others = ("objective", *_TOKENIZER, *_CONTAINER)
    own = {name: value for name, value in settings.items() if name not in others}
    name = {"name": settings["objective"]} if "objective" in settings else {}
    vocabulary = _chosen(written, ("vocabulary",))
    return {
        "text": _chosen(written, ("punkt",)),
        "tokenizer": {"kind": WORDPIECE, **_chosen(settings, _TOKENIZER), **vocabulary},
        "objective": {**name, **own, **name},
        "container": {**_chosen(settings, _CONTAINER), **_chosen(written, ("shuffle", "num_shards"))},
    }


def _chosen(values: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: values[name] for name in names if name in values}


def as_version_2(value: dict[str, Any], recipe: str | None, settings: dict[str, Any]) -> dict[str, Any]:
    """The manifest of version 3 as version 2 wrote it. recipe, settings: those in it."""
    records = value["settings"]
    head = {
        "format_version": _BEFORE,
        **_chosen(value, ("kind",)),
        "recipe": recipe,
        "phase": value["phase"],
        "settings": settings,
        "settings_digest": settings_digest(settings),
        "unicode_version": value["unicode_version"],
        "vocabulary": records["tokenizer"]["vocabulary"],
        **_chosen(records["container"], ("shuffle", "num_shards")),
        **_chosen(value, ("dataset_manifest",)),
        "punkt": records["text"]["punkt"],
    }
    rest = {name: item for name, item in value.items() if name not in head}
    if "totals" in rest:
        rest["totals"] = _without_new(rest["totals"])
    if "shards" in rest:
        rest["shards"] = [_without_new(shard) for shard in rest["shards"]]
    return head | rest


def _without_new(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values without those that version 2 did not count."""
    return {name: value for name, value in values.items() if name != "lost_tokens"}
