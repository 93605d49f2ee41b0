"""Read and write the two supported versions of a dataset manifest's JSON.

Version 3 stores the settings in four records (``bertdata.config.dataset_settings``). Version 2 stored them in
one object, with vocabulary, punkt and shuffle next to it. It also wrote a placeholder word as the recipe of a
dataset made without a recipe. A version 2 manifest is converted to version 3 when it is read, and written
back as version 2.
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
"""Advice for the user by manifest version, for old versions that can no longer be read."""

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
"""The settings of version 2 that version 3 stores in the records tokenizer and container. All others are in
the record objective.
"""


class DatasetJson(NamedTuple):
    """A manifest in version 3 form.

    version_2: the manifest as it was written, if that was version 2.
    """

    value: dict[str, Any]
    version_2: dict[str, Any] | None


def parse_dataset_json(data: bytes, where: str) -> DatasetJson:
    """Return the manifest's JSON in version 3 form, checked against ``schemas/manifest.json``.

    where: the manifest's path, for errors.

    Raises ManifestError, which names the value that does not fit.
    """
    written = parse_json(data, where)
    version = written.get("format_version", DATASET_VERSION)
    check_version(version, where, (_BEFORE, DATASET_VERSION), _REMADE)
    value = _upgrade_version_2(written) if version == _BEFORE else written
    check_schema(value, where, "manifest")
    return DatasetJson(value, written if version == _BEFORE else None)


def compute_settings_digest(settings: Mapping[str, Any]) -> str:
    """Return the BLAKE2b digest of the settings' canonical JSON as 32 hexadecimal digits."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _upgrade_version_2(written: dict[str, Any]) -> dict[str, Any]:
    """Convert a version 2 manifest to version 3. Malformed parts are kept for the schema check to report."""
    moved = ("punkt", "vocabulary", "shuffle", "num_shards")
    value = {name: item for name, item in written.items() if name not in moved}
    value["format_version"] = DATASET_VERSION
    settings = written.get("settings")
    if isinstance(settings, dict):
        value["settings"] = _make_records(written, settings)
        if value.get("recipe") in (
            "unverified",
            settings.get("objective"),
        ):  # placeholders that meant "no recipe"
            value["recipe"] = None
    return value


def _make_records(written: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Divide the settings of a version 2 manifest into the four records of version 3."""
    others = ("objective", *_TOKENIZER, *_CONTAINER)
    own = {name: value for name, value in settings.items() if name not in others}
    name = {"name": settings["objective"]} if "objective" in settings else {}
    vocabulary = _select_settings(written, ("vocabulary",))
    return {
        "text": _select_settings(written, ("punkt",)),
        "tokenizer": {"kind": WORDPIECE, **_select_settings(settings, _TOKENIZER), **vocabulary},
        "objective": {**name, **own, **name},
        "container": {
            **_select_settings(settings, _CONTAINER),
            **_select_settings(written, ("shuffle", "num_shards")),
        },
    }


def _select_settings(values: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: values[name] for name in names if name in values}


def convert_to_version_2(
    value: dict[str, Any], recipe: str | None, settings: dict[str, Any]
) -> dict[str, Any]:
    """Return a version 3 manifest in version 2 form.

    recipe, settings: as the original version 2 file stored them. They cannot be derived from version 3.
    """
    records = value["settings"]
    head = {
        "format_version": _BEFORE,
        **_select_settings(value, ("kind",)),
        "recipe": recipe,
        "phase": value["phase"],
        "settings": settings,
        "settings_digest": compute_settings_digest(settings),
        "unicode_version": value["unicode_version"],
        "vocabulary": records["tokenizer"]["vocabulary"],
        **_select_settings(records["container"], ("shuffle", "num_shards")),
        **_select_settings(value, ("dataset_manifest",)),
        "punkt": records["text"]["punkt"],
    }
    rest = {name: item for name, item in value.items() if name not in head}
    if "totals" in rest:
        rest["totals"] = _drop_new_counts(rest["totals"])
    if "shards" in rest:
        rest["shards"] = [_drop_new_counts(shard) for shard in rest["shards"]]
    return head | rest


def _drop_new_counts(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values without the counts that version 2 did not have."""
    return {name: value for name, value in values.items() if name != "lost_tokens"}
