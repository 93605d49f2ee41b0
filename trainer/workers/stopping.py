"""Agreement of all workers on the micro-batch after which they stop, and on the update after which they save.

A worker that stops or saves alone would leave the others waiting in a reduction. So once any worker is asked
to, rank 0 holds all of them before their next exchange, collects how many exchanges each has entered, and
announces the largest of these numbers: each worker continues until it has made as many, then stops, or saves
after the update. Messages travel over the heartbeat's connections, on the host: while nobody asks, nothing
is sent.
"""

import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

from trainer.errors import StopRequested
from trainer.workers.collective import Stopping

PREFIX = "stop "
"""The beginning of the messages: then end or save, then asked, hold, at RANK EXCHANGES, until EXCHANGES."""


class Rounds:
    """Agreements on one purpose, as seen from one worker; rank 0 begins one after the other.

    Connections keep the order of messages, so a worker knows a round's number before it hears of the next.
    limits: the agreed numbers of exchanges that this worker has not acted on yet.
    """

    def __init__(self, purpose: str, rank: int, size: int, send: Callable[[str], None]) -> None:
        self._begin, self._rank, self._size, self._send = f"{PREFIX}{purpose}", rank, size, send
        self.is_held = False
        self.limits = deque[int]()
        self._entered_by_rank: dict[int, int] = {}  # rank 0's

    def ask(self, entered: int) -> None:
        """Have rank 0 begin a round. entered: the exchanges that this worker has entered."""
        if self._rank > 0:
            self._send(f"{self._begin} asked")
        elif not (self.is_held or self.limits):  # else one is under way
            self.is_held = True
            self._send(f"{self._begin} hold")
            self._note(0, entered)

    def receive(self, word: str, values: list[int], entered: int) -> None:
        """Act on another worker's message of this purpose."""
        if word == "asked":
            self.ask(entered)
        elif word == "hold":
            self.is_held = True
            self._send(f"{self._begin} at {self._rank} {entered}")
        elif word == "at":
            self._note(*values)
        else:  # until
            self._agree(*values)

    def _note(self, rank: int, entered: int) -> None:
        self._entered_by_rank[rank] = entered
        if len(self._entered_by_rank) == self._size:
            limit = max(self._entered_by_rank.values())
            self._entered_by_rank = {}
            self._send(f"{self._begin} until {limit}")
            self._agree(limit)

    def _agree(self, limit: int) -> None:
        self.limits.append(limit)
        self.is_held = False


class StopAgreement(Stopping):
    """One worker's part of the agreements."""

    def __init__(self, rank: int, size: int, send: Callable[[str], None]) -> None:
        """send: to rank 0, or from rank 0 to all others."""
        self._entered = 0
        self._is_abandoned = False
        self._rounds = {purpose: Rounds(purpose, rank, size, send) for purpose in ("end", "save")}
        self._changed = threading.Condition()
        self._requests = SimpleQueue[str]()

    def start(self) -> None:
        """Start the thread that forwards requests."""
        threading.Thread(target=self._forward_requests, daemon=True).start()

    def request(self) -> None:
        self._requests.put("end")

    def request_save(self) -> None:
        self._requests.put("save")

    @property
    def is_agreed(self) -> bool:
        """True once the workers have agreed where they stop."""
        return bool(self._rounds["end"].limits)

    def check(self, *, exchanges: bool) -> None:
        with self._changed:
            if exchanges:
                self._changed.wait_for(self._may_go_on)
            if self.is_agreed and self._entered >= self._rounds["end"].limits[0]:
                raise StopRequested
            self._entered += exchanges

    def takes_save(self) -> bool:
        # The exchange of the check before is entered: the worker that was furthest must make it first.
        with self._changed:
            limits = self._rounds["save"].limits
            is_due = bool(limits) and self._entered > limits[0]
            if is_due:
                limits.popleft()
            return is_due

    def abandon(self) -> None:
        """Wait for the others no longer: one is lost, and the next exchange fails with its name."""
        with self._changed:
            self._is_abandoned = True
            self._changed.notify_all()

    def _may_go_on(self) -> bool:
        return self._is_abandoned or not any(rounds.is_held for rounds in self._rounds.values())

    def receive(self, message: str) -> None:
        """Act on another worker's message, which begins with PREFIX."""
        purpose, word, *values = message.removeprefix(PREFIX).split()
        with self._changed:
            self._rounds[purpose].receive(word, [int(value) for value in values], self._entered)
            self._changed.notify_all()

    def _forward_requests(self) -> None:
        while True:
            purpose = self._requests.get()
            with self._changed:
                self._rounds[purpose].ask(self._entered)
                self._changed.notify_all()
