"""A warning, once, where the device waits for data."""

from collections.abc import Callable

from bertdata.io.process_pool import available_cores
from trainer.config.settings import Config
from trainer.report.reporter import SETTLING_UPDATES

MOST_SHARE = 0.1
"""The share of the time from which on the device is said to wait."""

_SECONDS = 10.0
"""Shortest time to judge from."""


class DataWait:
    """Time spent waiting for data, without the first updates."""

    def __init__(self, config: Config, log: Callable[[str], None]) -> None:
        self._config, self._log = config, log
        self._settling = SETTLING_UPDATES
        self._seconds, self._waited = 0.0, 0.0
        self._is_told = False

    def add(self, updates: int, seconds: float, waited: float) -> None:
        """Count so many updates; seconds and waited: of one of them. Warns where that was too long."""
        if self._settling > 0:
            self._settling -= updates
            return
        self._seconds += updates * seconds
        self._waited += updates * waited
        if self._is_told or self._seconds < _SECONDS or self._waited <= MOST_SHARE * self._seconds:
            return
        self._is_told = True
        share = self._waited / self._seconds
        self._log(f"warning: the device waits for data {share:.0%} of the time; {self._remedy()}")

    def _remedy(self) -> str:
        config, cores = self._config, available_cores()
        remedies = [f"more cores help (this process has {cores})"]
        if config.draws_masks:
            remedies.append("as do masks that are made before (masking static)")
        if config.data.pack_on_load:
            remedies.append("as do packs that are made before (bertdata pack)")
        return ", ".join(remedies)
