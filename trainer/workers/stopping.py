"""Agreement of all workers on the micro-batch after which they stop.

A worker that stops alone would leave the others waiting in a reduction. So once any worker is asked to stop,
rank 0 holds all of them before their next exchange, collects how many exchanges each has entered, and
announces the largest of these numbers: each worker continues until it has made as many, then stops.
Messages travel over the heartbeat's connections, on the host: while nobody asks, nothing is sent.
"""

import threading
from collections.abc import Callable
from queue import SimpleQueue

from trainer.errors import StopRequested
from trainer.workers.collective import Stopping

PREFIX = "stop "
"""The beginning of the messages: asked, hold, at RANK EXCHANGES, until EXCHANGES."""


class StopAgreement(Stopping):
    """One worker's part of the agreement."""

    def __init__(self, rank: int, size: int, send: Callable[[str], None]) -> None:
        """send: to rank 0, or from rank 0 to all others."""
        self._rank, self._size, self._send = rank, size, send
        self._entered = 0
        self._is_held = False
        self._is_abandoned = False
        self._limit: int | None = None  # the agreed number of exchanges
        self._entered_by_rank: dict[int, int] = {}  # rank 0's
        self._changed = threading.Condition()
        self._requests = SimpleQueue[None]()

    def start(self) -> None:
        """Start the thread that forwards requests."""
        threading.Thread(target=self._forward_requests, daemon=True).start()

    def request(self) -> None:
        self._requests.put(None)

    def check(self, *, exchanges: bool) -> None:
        with self._changed:
            if exchanges:
                self._changed.wait_for(self._may_go_on)
            if self._limit is not None and self._entered >= self._limit:
                raise StopRequested
            self._entered += exchanges

    def abandon(self) -> None:
        """Wait for the others no longer: one is lost, and the next exchange fails with its name."""
        with self._changed:
            self._is_abandoned = True
            self._changed.notify_all()

    def _may_go_on(self) -> bool:
        return not self._is_held or self._limit is not None or self._is_abandoned

    def receive(self, message: str) -> None:
        """Act on another worker's message, which begins with PREFIX."""
        word, *values = message.removeprefix(PREFIX).split()
        with self._changed:
            if word == "until":
                self._limit = int(values[0])
                self._changed.notify_all()
            elif word == "at":
                self._note(int(values[0]), int(values[1]))
            else:  # asked, hold
                self._hold()

    def _forward_requests(self) -> None:
        while True:
            self._requests.get()
            if self._rank == 0:
                with self._changed:
                    self._hold()
            else:
                self._send(f"{PREFIX}asked")

    def _hold(self) -> None:
        """Enter no more exchanges until the agreement. Report the number of those entered."""
        if self._is_held:
            return
        self._is_held = True
        if self._rank == 0:
            self._send(f"{PREFIX}hold")
            self._note(0, self._entered)
        else:
            self._send(f"{PREFIX}at {self._rank} {self._entered}")

    def _note(self, rank: int, entered: int) -> None:
        self._entered_by_rank[rank] = entered
        if len(self._entered_by_rank) == self._size:
            self._limit = max(self._entered_by_rank.values())
            self._send(f"{PREFIX}until {self._limit}")
            self._changed.notify_all()
