"""Defaults that give way to keys that the user has set, so that no unset key refuses a value."""

from collections.abc import Mapping
from typing import Any

from trainer.config.settings import get_key_schemas

_ASCENDING = (
    ("min_loss_scale", "init_loss_scale", "max_loss_scale"),
    ("min_micro_batches", "max_micro_batches"),
)
"""Groups of keys whose values must ascend."""


def fit_defaults(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return values for unset keys whose default contradicts a key that is set.

    For example, --max-loss-scale 100 is below the default of init_loss_scale, 65536, which becomes 100.
    keys: the keys that are set.
    """
    found: dict[str, Any] = {}
    for names in _ASCENDING:
        given = [keys.get(name) for name in names]
        for place, name in enumerate(names):
            default = get_key_schemas()[name]["default"]
            fitting = max([default, *(value for value in given[:place] if value is not None)])
            fitting = min([fitting, *(value for value in given[place + 1 :] if value is not None)])
            if given[place] is None and fitting != default:
                found[name] = fitting
    return found
