"""Helpers for tests of the trainer's configuration: they write files and return error messages."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from bertdata.config.declared import derive_schemas
from bertdata.errors import SettingsError
from tests.support.paths import ROOT
from trainer.config.flags import make_config
from trainer.config.schedules.form import Warmup
from trainer.config.sections.section import Section
from trainer.config.settings import Config, get_key_schemas

CONFIGS = ROOT / "trainer" / "config" / "shipped"
OWN_KEYS = set(get_key_schemas())


def config_file(folder: Path, **keys: Any) -> str:
    path = folder / "config.json"
    path.write_text(json.dumps(keys), encoding="utf-8")
    return str(path)


def refusal(arguments: list[str]) -> str:
    with pytest.raises(SettingsError) as caught:
        make_config(arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def warmup_updates(config: Config) -> int:
    return Warmup.of(config.schedule.warmup, config.schedule.steps).updates


def assert_declared(kind: type[Section]) -> None:
    """Assert that each field of the configuration section has a declaration and a description."""
    assert list(derive_schemas(kind)) == [field.name for field in fields(kind)]
    assert all(item["description"] for item in derive_schemas(kind).values())


def assert_keys(config: Config, **wanted: Any) -> None:
    keys = config.as_json()
    keys |= {"schedule": config.schedule_name, "clipping_point": config.update.clipping_point}
    keys |= {"warmup_updates": warmup_updates(config)}
    assert {name: keys[name] for name in wanted} == wanted
