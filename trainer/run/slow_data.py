"""Advice to the user if the device waits for data."""

from bertdata.io.process_pool import count_available_cores
from trainer.config.settings import Config


def describe_remedy(config: Config) -> str:
    """Return in words how to load data faster, as far as this machine and the settings allow it."""
    remedies = [f"more cores help (this process has {count_available_cores()})"]
    if config.masking_at_load:
        remedies.append("as do masks that are made before (masking static)")
    if config.loading.pack_on_load:
        remedies.append("as do packs that are made before (bertdata pack)")
    return ", ".join(remedies)
