"""Environment variables that every command obeys."""

import os
from typing import Any

from bertdata.errors import SettingsError

WEIGHT_SYNC = "FORCE_WEIGHT_SYNC"
WANDB_MODE = "WANDB_MODE"

ONLINE, OFFLINE, DISABLED = "online", "offline", "disabled"
_WANDB_MODES = {"run": ONLINE, "dryrun": OFFLINE, "shared": ONLINE}
"""Older or rarer names of wandb's modes, and the usual name of each mode."""


def forces_weight_sync() -> bool:
    """Return whether an environment variable asks to average the workers' weights before each update."""
    return os.environ.get(WEIGHT_SYNC, "").lower() in ("1", "true")


def read_wandb_mode() -> str | None:
    """Return the mode of wandb from WANDB_MODE: online, offline or disabled. None if it is not set."""
    found = os.environ.get(WANDB_MODE, "").lower()
    mode = _WANDB_MODES.get(found, found)
    if mode not in ("", ONLINE, OFFLINE, DISABLED):
        raise SettingsError(
            f"{WANDB_MODE} of the environment is {found!r}, expected {ONLINE}, {OFFLINE} or {DISABLED}"
        )
    return mode or None


def find_environment_keys(keys: dict[str, Any]) -> dict[str, tuple[Any, str]]:
    """Find keys whose values environment variables override. Return (value, name of the variable) for each
    key.

    keys: the configuration's keys and values.
    """
    found: dict[str, tuple[Any, str]] = {}
    if forces_weight_sync():
        found["force_weight_sync"] = (True, WEIGHT_SYNC)
    mode = read_wandb_mode() if keys["wandb"] or keys["wandb_offline"] else None
    if mode == DISABLED:
        found |= {"wandb": (False, WANDB_MODE), "wandb_offline": (False, WANDB_MODE)}
    elif mode == OFFLINE:
        found["wandb_offline"] = (True, WANDB_MODE)
    return found
