"""Conversion between the two supported versions of the JSON of a dataset's manifest.

Version 3 stores the settings in four records (JSON objects), which ``bertdata.config.dataset_settings``
describes. Version 2 stored all settings in a single object, except vocabulary, punkt and shuffle, which were
stored beside it. If a dataset was made without a recipe, version 2 stored a placeholder as the name of the
recipe. Manifests of version 2 are converted to version 3 when they are read, and written as version 2 again.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from bertdata.config.dataset_settings import WORDPIECE
from bertdata.io.manifest_file import check_schema, check_version, parse_json

DATASET_VERSION = 3
_OLD_VERSION = 2
_UPGRADE_ADVICE = {
    1: "remove the directory and make it again: its shards get the same bytes",
}
"""Advice for the user, by the version of a manifest that is so old that it can no longer be read."""

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
"""Settings that version 3 stores in the record ``container``. _TOKENIZER lists those of the record
``tokenizer``.

All other settings of version 2 belong to the record ``objective``.
"""


class DatasetJson(NamedTuple):
    """The JSON of a manifest in the form of version 3.

    version_2: the JSON as the file contains it, if that is version 2. Otherwise None.
    """

    value: dict[str, Any]
    version_2: dict[str, Any] | None


def parse_dataset_json(data: bytes, where: str) -> DatasetJson:
    """Parse a dataset's manifest and return its JSON in the form of version 3.

    where: path of the manifest, for error messages.

    Raises ManifestError, which names the value, unless the JSON fits the schema ``schemas/manifest.json``.
    """
    written = parse_json(data, where)
    version = written.get("format_version", DATASET_VERSION)
    check_version(version, where, (_OLD_VERSION, DATASET_VERSION), _UPGRADE_ADVICE)
    value = _upgrade_version_2(written) if version == _OLD_VERSION else written
    check_schema(value, where, "manifest")
    return DatasetJson(value, written if version == _OLD_VERSION else None)


def compute_settings_digest(settings: Mapping[str, Any]) -> str:
    """Return the BLAKE2b digest of the settings in canonical JSON, as 32 hexadecimal digits."""
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _upgrade_version_2(written: dict[str, Any]) -> dict[str, Any]:
    """Convert a manifest of version 2 to version 3.

    Parts that do not have the expected form are not changed. The later check against the schema reports them.
    """
    moved = ("punkt", "vocabulary", "shuffle", "num_shards")
    value = {name: item for name, item in written.items() if name not in moved}
    value["format_version"] = DATASET_VERSION
    settings = written.get("settings")
    if isinstance(settings, dict):
        value["settings"] = _make_records(written, settings)
        if value.get("recipe") in (
            "unverified",
            settings.get("objective"),
        ):  # words that version 2 stored if there was no recipe
            value["recipe"] = None
    return value


def _make_records(written: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Divide the settings of a manifest of version 2 into the four records of version 3."""
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
    """Return those of the settings that have one of these names."""
    return {name: values[name] for name in names if name in values}


def convert_to_version_2(
    value: dict[str, Any], recipe: str | None, settings: dict[str, Any]
) -> dict[str, Any]:
    """Return the JSON of a manifest of version 3 in the form of version 2.

    recipe, settings: recipe and settings as the original file of version 2 stored them. They cannot be
        derived from version 3.
    """
    records = value["settings"]
    head = {
        "format_version": _OLD_VERSION,
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
    """Return a manifest entry without the counts that did not yet exist in version 2."""
    return {name: value for name, value in values.items() if name != "lost_tokens"}
