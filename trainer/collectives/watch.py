"""Which worker was lost? Libraries only tell that a connection broke, or tell nothing and wait.

Each worker keeps a connection to rank 0 and gives a sign of life now and then, as rank 0 does. When a
process ends, the system closes its connection; when it hangs, the signs stay out. Rank 0 tells the others
whom it misses; when rank 0 itself is missing, each notices. A worker whose main thread is deep in some
library then still ends, by the hand of its watch.
"""

import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from trainer.errors import WorkerLost

PATIENCE = 60.0
"""Seconds without a sign of life after which a worker counts as lost."""

_NEWS_SECONDS = 3.0  # for the loss to be known once the library failed; horovodrun kills after 5
_RAISE_SECONDS = 2.0  # for the main thread to notice
_END_SECONDS = 10.0  # for the main thread to end after that


class Watch:
    """This worker's part of the watch, in threads of its own."""

    def __init__(self, rank: int, size: int) -> None:
        self._rank, self._size = rank, size
        self._links: dict[int, socket.socket] = {}
        self._message = ""
        self._lock, self._known, self._raised = threading.Lock(), threading.Event(), threading.Event()

    def begin(self, address: str, share: Callable[[Any], Any]) -> None:
        """Watch from now on; address: rank 0's (others' are ignored); share: brings rank 0's value to all."""
        try:
            with socket.create_server(("", 0), backlog=self._size) as listener:
                listener.settimeout(PATIENCE)
                # A stranger who finds the port in this moment can say nothing without the word.
                place, word = share([(address, listener.getsockname()[1]), secrets.token_hex(8)])
                if self._rank > 0:
                    self._links[0] = socket.create_connection(place, PATIENCE)
                    self._tell(f"{word} {self._rank}")
                while self._rank == 0 and len(self._links) < self._size - 1:
                    link = listener.accept()[0]
                    link.settimeout(PATIENCE)
                    said, _, number = link.recv(64).strip(b".").partition(b" ")  # a sign may follow at once
                    if said == word.encode():
                        self._links[int(number)] = link
        except OSError as error:
            raise WorkerLost(f"the workers did not meet: {error}") from error
        for rank, link in self._links.items():
            os.register_at_fork(after_in_child=link.close)  # a child's copy must not outlive the worker
            threading.Thread(target=self._follow, args=[rank, link], daemon=True).start()
        threading.Thread(target=self._live, daemon=True).start()

    @contextmanager
    def naming_losses(self) -> Iterator[None]:
        """WorkerLost in place of the library's error, if a lost worker is the reason."""
        try:
            yield
        except RuntimeError as error:
            if not self._known.wait(_NEWS_SECONDS):
                raise
            # The launcher is about to end the others too; its signal would only hide the exit status.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            self._raised.set()
            raise WorkerLost(self._message) from error

    def close(self) -> None:
        """Say that the end of this process will be no loss."""
        self._tell("bye")

    def _tell(self, text: str) -> None:
        for link in self._links.values():
            with suppress(OSError):  # that it is broken is for those to notice who listen
                link.sendall(text.encode())

    def _live(self) -> None:
        while True:
            self._tell(".")
            time.sleep(PATIENCE / 12)

    def _follow(self, rank: int, link: socket.socket) -> None:
        """Listen to a worker until it takes leave, ends, falls silent, or knows of a loss."""
        why = "its process ended"
        try:
            while said := link.recv(4096):
                if news := said.decode().strip("."):
                    return None if news == "bye" else self._learn(news)
        except TimeoutError:
            why = f"no sign of life for {PATIENCE:g} s"
        except OSError:
            pass  # it ended with something unread
        lost = f"worker {rank} of {self._size} was lost: {why}"
        self._learn(f"{lost}; training stops, the last checkpoint is where to go on")

    def _learn(self, message: str) -> None:
        """Tell it on before this process ends, which it does here if not by its main thread."""
        with self._lock:
            if self._message:
                return  # the first report is the reason, later ones its consequences
            self._message = message
        self._tell(message)
        self._known.set()
        if self._raised.wait(_RAISE_SECONDS):
            time.sleep(_END_SECONDS)
        else:
            sys.stderr.write(f"trainer: error: {message}\n")  # at one go, others write there too
            sys.stderr.flush()
        os._exit(WorkerLost.exit_status)
