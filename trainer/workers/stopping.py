"""Agreement of all workers on the micro-batch after which they stop, and the update after which they save.

A worker that stops or saves alone would leave the others waiting in an exchange of data. So when a worker is
asked to stop, rank 0 tells all workers to hold, that is, to wait before their next exchange. Each worker
answers how many exchanges it has entered, and rank 0 announces the largest number. Each worker continues
until it has made this number of exchanges. Then it stops, or saves after the update.

Example: worker 0 has entered 7 exchanges. Worker 1 has entered 8, and waits in the last one for worker 0. The
largest number is 8, so worker 0 makes one more exchange, and both stop after 8.

What counts as an exchange are the checks before exchanges, whatever is really sent: one at the start of an
update, one before its last micro-batch (or before each micro-batch, if gradients are exchanged after each),
and one at the end of the training.

The messages use the connections of the heartbeats, on the host. As long as nobody asks to stop or save,
nothing is sent.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

from trainer.errors import StopRequested
from trainer.workers.collective import Stopping

PREFIX = "stop "
"""The word with which every message begins. It is followed by the purpose, "end" or "save", and the content:
"asked", "hold", "at RANK EXCHANGES" or "until EXCHANGES".
"""


class AgreementRounds:
    """Rounds of messages in which the workers agree where to stop or where to save, as seen from one worker.

    There is an object for each purpose, "end" and "save". Rank 0 begins each round. Connections keep messages
    in order, so a worker knows the result of a round before the next begins.
    limits: results of rounds that this worker has not acted on yet. A result is a number of exchanges.
    is_held: True while a round is under way, so that this worker must not enter another exchange.
    """

    def __init__(self, purpose: str, rank: int, size: int, send: Callable[[str], None]) -> None:
        self._begin, self._rank, self._size, self._send = f"{PREFIX}{purpose}", rank, size, send
        self.is_held = False
        self.limits = deque[int]()
        # on rank 0 only: the number of exchanges that each worker has entered
        self._entered_by_rank: dict[int, int] = {}

    def ask(self, entered: int) -> None:
        """Ask rank 0 to begin a round.

        entered: number of exchanges that this worker has entered.
        """
        if self._rank > 0:
            self._send(f"{self._begin} asked")
        # Do nothing if a round is already under way, or if its result must still be acted on.
        elif not (self.is_held or self.limits):
            self.is_held = True
            self._send(f"{self._begin} hold")
            self._note_exchanges(0, entered)

    def receive(self, word: str, values: list[int], entered: int) -> None:
        """Act on a message from another worker.

        word: content of the message, "asked", "hold", "at" or "until".
        values: the numbers in the message.
        entered: number of exchanges that this worker has entered.
        """
        if word == "asked":
            self.ask(entered)
        elif word == "hold":
            self.is_held = True
            self._send(f"{self._begin} at {self._rank} {entered}")
        elif word == "at":
            self._note_exchanges(*values)
        else:  # the word is "until", and the value is the agreed number of exchanges
            self._set_limit(*values)

    def _note_exchanges(self, rank: int, entered: int) -> None:
        """Store, on rank 0, how many exchanges a worker has entered. When all are known, announce the largest
        number.
        """
        self._entered_by_rank[rank] = entered
        if len(self._entered_by_rank) == self._size:
            limit = max(self._entered_by_rank.values())
            self._entered_by_rank = {}
            self._send(f"{self._begin} until {limit}")
            self._set_limit(limit)

    def _set_limit(self, limit: int) -> None:
        """Store the agreed number of exchanges, and let this worker continue until it has made them."""
        self.limits.append(limit)
        self.is_held = False


class StopAgreement(Stopping):
    """This worker's part in the agreements on where all workers stop and where they save."""

    def __init__(self, rank: int, size: int, send: Callable[[str], None]) -> None:
        """Prepare this worker's part in the agreements.

        rank: rank of this worker.
        size: number of workers.
        send: function that sends a message to rank 0, or from rank 0 to all other workers.
        """
        self._entered = 0
        self._is_abandoned = False
        self._rounds = {purpose: AgreementRounds(purpose, rank, size, send) for purpose in ("end", "save")}
        self._changed = threading.Condition()
        self._requests = SimpleQueue[str]()

    def start(self) -> None:
        """Start the thread that passes on the requests of signal handlers."""
        threading.Thread(target=self._forward_requests, daemon=True).start()

    def request(self) -> None:
        # A signal handler must not wait for a lock, because the interrupted code may hold it. So it only puts
        # the request into a queue.
        self.asked_at = self.asked_at or time.monotonic()
        self.is_asked_here = True
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
                # Wait while a round is under way. If this worker entered another exchange now, the number
                # that it has sent would be wrong.
                self._changed.wait_for(self._may_go_on)
            if self.is_agreed and self._entered >= self._rounds["end"].limits[0]:
                self.has_stopped = True
                raise StopRequested
            self._entered += exchanges

    def take_save_request(self) -> bool:
        # The exchange after the last check counts as entered, although it has not been made yet. Save before
        # it only if it is beyond the agreed number, because then no other worker has entered it either.
        with self._changed:
            limits = self._rounds["save"].limits
            is_due = bool(limits) and self._entered > limits[0]
            if is_due:
                limits.popleft()
            return is_due

    def stop_waiting(self) -> None:
        """Stop waiting for the other workers, because one is lost. The next exchange fails and names it."""
        with self._changed:
            self._is_abandoned = True
            self._changed.notify_all()

    def _may_go_on(self) -> bool:
        return self._is_abandoned or not any(rounds.is_held for rounds in self._rounds.values())

    def receive(self, message: str) -> None:
        """Act on a message from another worker. It begins with PREFIX."""
        purpose, word, *values = message.removeprefix(PREFIX).split()
        if purpose == "end":
            self.asked_at = self.asked_at or time.monotonic()
        with self._changed:
            self._rounds[purpose].receive(word, [int(value) for value in values], self._entered)
            self._changed.notify_all()

    def _forward_requests(self) -> None:
        """Pass on the requests that signal handlers have put into the queue. This runs in a thread."""
        while True:
            purpose = self._requests.get()
            with self._changed:
                self._rounds[purpose].ask(self._entered)
                self._changed.notify_all()
