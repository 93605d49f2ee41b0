"""Fetching of a dataset's files into the cache before they are needed, in threads of each worker.

All workers of a machine have the same forecast and go through the files in the same order. A file that
another worker is fetching is passed over. So the workers fetch different files.
"""

import os
import threading
from contextlib import ExitStack

import numpy as np

from trainer.data.cache.folder import GROWING
from trainer.data.cache.forecast import Forecast
from trainer.data.cache.shard_cache import FetchingStopped, Outlook, ShardCache

_THREADS = 2
"""Number of threads of a worker that fetch files."""
_LONGEST_REST_SECONDS = 1.0
_SHORTEST_REST_SECONDS = 0.05
"""Time between two looks for a file to fetch, if there was none at the first look."""


class Fetcher:
    """Object that fetches files ahead, and keeps those that are needed soon from being dropped.

    cache: the cache of the dataset.
    forecast: says when the machine's workers need which file.
    place: place in the order at which the run begins.
    until: place at which the run ends. Files that are needed only after it are not fetched.
    """

    def __init__(self, cache: ShardCache, forecast: Forecast, *, place: int, until: int) -> None:
        self._cache, self._forecast, self._until = cache, forecast, until
        self._names = [cache.names.get(file.path) for file in cache.files]
        # ``_changed`` guards what threads share: the numbers of the files that are being fetched or could not
        # be fetched, and a descriptor for each file that is kept. Threads that find nothing to fetch wait for
        # the next place.
        self._changed = threading.Condition()
        self._at_work, self._failed = set[int](), set[int]()
        self._kept = dict[int, int]()
        self._is_closed = False
        self._stack = ExitStack()
        self._stack.callback(os.close, cache.folder.use())
        self._outlook = self._look_ahead(place)
        cache.expect(self._outlook)
        for number in range(_THREADS):
            threading.Thread(target=self._work, name=f"fetcher {number}", daemon=True).start()

    def reach(self, place: int) -> None:
        """Take note that this worker has come to a place in the order. After ``close``, do nothing."""
        outlook = self._look_ahead(place)
        with self._changed:
            # The loader's thread may call this a last time while the run ends.
            if self._is_closed:
                return
            self._outlook = outlook
            self._cache.expect(outlook)
            for number in [one for one in self._kept if not outlook.near[one]]:
                os.close(self._kept.pop(number))
            self._changed.notify_all()

    def close(self) -> None:
        """Release all files, so that the cache may drop them, and end the threads.

        A thread that is fetching ends a moment later.
        """
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            for descriptor in self._kept.values():
                os.close(descriptor)
            self._kept.clear()
            self._cache.expect(None)
            self._changed.notify_all()
        self._stack.close()

    def _look_ahead(self, place: int) -> Outlook:
        """Return the next needs as seen from a place."""
        needs = self._forecast.find_next(place)
        return Outlook(needs, self._forecast.is_near(place, needs))

    def _work(self) -> None:
        """Fetch one file after the other until the end of the run. A thread runs this."""
        while True:
            with self._changed:
                if self._is_closed:
                    return
                outlook = self._outlook
                number = self._choose(outlook)
                if number is None:
                    self._rest(outlook)
                    continue
                self._at_work.add(number)
            has_room = self._hold(number, outlook)
            with self._changed:
                self._at_work.discard(number)
                if not has_room:
                    self._rest(outlook)

    def _rest(self, outlook: Outlook) -> None:
        """Wait until the run has come to another place, or has ended, or until another worker may have
        dropped files.

        Call this under ``_changed``.
        outlook: the outlook with which there was nothing to fetch, or no room.
        """
        # A fast run comes to another place every few milliseconds.
        self._changed.wait_for(lambda: self._is_closed, timeout=_SHORTEST_REST_SECONDS)
        self._changed.wait_for(
            lambda: self._is_closed or self._outlook is not outlook, timeout=_LONGEST_REST_SECONDS
        )

    def _choose(self, outlook: Outlook) -> int | None:
        """Return the number of the next file to fetch or to keep, or None if there is none."""
        there = self._cache.folder.list_names()
        passed_over = self._kept.keys() | self._at_work | self._failed
        for number in np.argsort(outlook.needs, kind="stable").tolist():
            name = self._names[number]
            if outlook.needs[number] >= self._until:
                return None
            # Others are local, have been dealt with, or another worker is fetching them.
            is_open = name is not None and number not in passed_over
            if is_open and f"{name}{GROWING}" not in there and (name not in there or outlook.near[number]):
                return int(number)
        return None

    def _hold(self, number: int, outlook: Outlook) -> bool:
        """Fetch a file, and keep it if it is needed soon. Return False if the cache has no room for it.

        If another worker has begun to fetch it since it was chosen, leave the file to that worker.

        The file with the lengths of its examples is fetched first. It is not kept, because it can be read
        again in a moment.
        """
        descriptor = None
        try:
            for file in filter(None, (self._cache.lengths[number], self._cache.files[number])):
                if descriptor is not None:
                    os.close(descriptor)
                descriptor = self._cache.hold(
                    file, before=int(outlook.needs[number]), is_stopped=lambda: self._is_closed
                )
        except FetchingStopped:
            return True
        except Exception:
            # The worker that needs the file tries again, and reports the error. Here any error of a store's
            # client would end the thread.
            with self._changed:
                self._failed.add(number)
            return True
        if descriptor is None:
            name = self._names[number]
            return bool({name, f"{name}{GROWING}"} & self._cache.folder.list_names())
        with self._changed:
            if self._is_closed or not self._outlook.near[number]:
                os.close(descriptor)
            else:
                self._kept[number] = descriptor
        return True
