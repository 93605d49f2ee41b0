"""Agreement of all workers on the micro-batch after which they stop, and the update after which they save.

A worker that stops or saves alone would leave the others waiting in an exchange. So when a worker is asked to
stop, rank 0 tells all workers to hold before their next exchange, collects how many exchanges each has
entered, and announces the largest number. Each worker continues until it has made that many exchanges, then
stops, or saves after the update.

Example: worker 0 has entered 7 exchanges, worker 1 has entered 8 and waits in it for worker 0. The largest
number is 8, so worker 0 makes one more exchange and both stop after 8.

An exchange is counted at each check that precedes one, whatever is really sent: at the start of an update and
before its last micro-batch (before each micro-batch if gradients are exchanged after each), and once at the
end of the training.

Messages use the heartbeat's connections, on the host. As long as nobody asks, nothing is sent.
"""

import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

from trainer.errors import StopRequested
from trainer.workers.collective import Stopping

PREFIX = "stop "
"""The word with which every message begins. Then comes the purpose, "end" or "save", and then the content:
"asked", "hold", "at RANK EXCHANGES" or "until EXCHANGES".
"""


class AgreementRounds:
    """The rounds of messages in which workers agree where to stop, or where to save, as seen from one worker.

    There is an object for each purpose, "end" and "save". Rank 0 begins each round.

    Connections keep messages in order, so a worker knows the result of a round before the next round begins.
    limits: agreed numbers of exchanges that this worker has not acted on yet.
    is_held: a round is under way, and this worker must not enter another exchange.
    """

    def __init__(self, purpose: str, rank: int, size: int, send: Callable[[str], None]) -> None:
        self._begin, self._rank, self._size, self._send = f"{PREFIX}{purpose}", rank, size, send
        self.is_held = False
        self.limits = deque[int]()
        self._entered_by_rank: dict[int, int] = {}  # on rank 0 only: exchanges that each worker has entered

    def ask(self, entered: int) -> None:
        """Ask rank 0 to begin a round. entered: number of exchanges that this worker has entered."""
        if self._rank > 0:
            self._send(f"{self._begin} asked")
        # otherwise a round is under way already, or its result is still to be acted on
        elif not (self.is_held or self.limits):
            self.is_held = True
            self._send(f"{self._begin} hold")
            self._note_exchanges(0, entered)

    def receive(self, word: str, values: list[int], entered: int) -> None:
        """Act on another worker's message about this object's purpose (to stop, or to save)."""
        if word == "asked":
            self.ask(entered)
        elif word == "hold":
            self.is_held = True
            self._send(f"{self._begin} at {self._rank} {entered}")
        elif word == "at":
            self._note_exchanges(*values)
        else:  # the message is "until": the agreed number of exchanges
            self._set_limit(*values)

    def _note_exchanges(self, rank: int, entered: int) -> None:
        """On rank 0, note how many exchanges a worker has entered.

        When all are known, announce the largest.
        """
        self._entered_by_rank[rank] = entered
        if len(self._entered_by_rank) == self._size:
            limit = max(self._entered_by_rank.values())
            self._entered_by_rank = {}
            self._send(f"{self._begin} until {limit}")
            self._set_limit(limit)

    def _set_limit(self, limit: int) -> None:
        """Remember the agreed number of exchanges, and let this worker continue until then."""
        self.limits.append(limit)
        self.is_held = False


class StopAgreement(Stopping):
    """One worker's part in the workers' agreements on where to stop and where to save."""

    def __init__(self, rank: int, size: int, send: Callable[[str], None]) -> None:
        """Make this worker's part in the agreements.

        rank: this worker's rank. size: number of workers. send: sends a message to rank 0, or from rank 0 to
        all others.
        """
        self._entered = 0
        self._is_abandoned = False
        self._rounds = {purpose: AgreementRounds(purpose, rank, size, send) for purpose in ("end", "save")}
        self._changed = threading.Condition()
        self._requests = SimpleQueue[str]()

    def start(self) -> None:
        """Start the thread that forwards requests."""
        threading.Thread(target=self._forward_requests, daemon=True).start()

    def request(self) -> None:
        # A queue, because a signal handler may not wait for the lock that the interrupted code may hold.
        self._requests.put("end")

    def request_save(self) -> None:
        self._requests.put("save")

    @property
    def is_agreed(self) -> bool:
        """True when the workers have agreed where to stop."""
        return bool(self._rounds["end"].limits)

    def check(self, *, exchanges: bool) -> None:
        with self._changed:
            if exchanges:
                # Wait while a round is under way. Entering another exchange now would make the collected
                # numbers wrong.
                self._changed.wait_for(self._may_go_on)
            if self.is_agreed and self._entered >= self._rounds["end"].limits[0]:
                raise StopRequested
            self._entered += exchanges

    def take_save_request(self) -> bool:
        # The exchange of the last check is already counted as entered, though not made. Save only if the
        # worker that was furthest ahead must make it first too.
        with self._changed:
            limits = self._rounds["save"].limits
            is_due = bool(limits) and self._entered > limits[0]
            if is_due:
                limits.popleft()
            return is_due

    def stop_waiting(self) -> None:
        """Stop waiting for the others. One of them is lost, and the next exchange fails with its name."""
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
        """Forward requests from the signal handlers. Runs in a thread."""
        while True:
            purpose = self._requests.get()
            with self._changed:
                self._rounds[purpose].ask(self._entered)
                self._changed.notify_all()
