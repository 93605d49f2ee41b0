"""Remedies for a device that waits for data."""

from bertdata.io.process_pool import count_available_cores
from trainer.config.settings import Config


def describe_remedy(config: Config) -> str:
    """Return the ways to faster data that this machine and these settings leave open."""
    remedies = [f"more cores help (this process has {count_available_cores()})"]
    if config.masking_at_load:
        remedies.append("as do masks that are made before (masking static)")
    if config.loading.pack_on_load:
        remedies.append("as do packs that are made before (bertdata pack)")
    return ", ".join(remedies)
