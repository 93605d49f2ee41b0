"""Which worker was lost? Libraries only tell that a connection broke, or tell nothing and wait.

Each worker keeps a connection to the next one and asks it for a sign of life now and then. When that
one's process ends, the system closes the connection; when it hangs, the answer stays out. Who notices
asks all the others, then tells those that answered who did not. A worker whose main thread is deep in
some library then still ends, by the hand of its watch.
"""

import json
import os
import secrets
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from trainer.errors import WorkerLost

_PAUSE_SECONDS = 5.0  # between two questions
_ROLL_CALL_SECONDS = 5.0  # for an answer once something is known to be wrong
_REACH_SECONDS = 10.0  # for the first answer
_RAISE_SECONDS = 2.0  # for the main thread to notice; horovodrun kills after 5
_END_SECONDS = 10.0  # for the main thread to end after that
_LONGEST_LINE = 65536

Gather = Callable[[Any], list[Any]]


class Watch:
    """This worker's part of the watch, from now on, in threads of its own."""

    def __init__(self, rank: int, size: int, meeting_point: str, gather: Gather, patience: float) -> None:
        self._rank, self._size, self._patience = rank, size, patience
        self._lost: dict[int, str] = {}
        self._known, self._raised = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("", 0), backlog=128)
        self._asking: list[socket.socket] = []
        self._next = (rank + 1) % size
        self._link: socket.socket | None = None
        # A stranger who finds the port can say nothing without the word.
        port = self._listener.getsockname()[1]
        everyones = gather([secrets.token_hex(8), _own_address(meeting_point), port])
        self._word = everyones[0][0]
        self._places = [(address, port) for _, address, port in everyones]
        threading.Thread(target=self._serve, daemon=True).start()
        self._sees = all(gather(self._reach_next()))
        if self._sees and size > 1:
            os.register_at_fork(after_in_child=self._leave_to_parent)
            threading.Thread(target=self._follow, daemon=True).start()

    def check(self) -> None:
        """Raise WorkerLost if one is known to be lost."""
        if self._known.is_set():
            self._raise()

    def explain(self, error: Exception) -> None:
        """Raise WorkerLost if a lost worker is the reason of the library's error; else return."""
        if not self._known.wait(_RAISE_SECONDS / 2) and self._sees:
            self._call_roll({})
        if self._known.is_set():
            self._raise(error)

    def close(self) -> None:
        """Say that the end of this process will be no loss."""
        for connection in self._asking:
            with suppress(OSError):  # who watched this worker may have gone before
                connection.sendall(b"bye\n")

    def _raise(self, cause: Exception | None = None) -> NoReturn:
        if threading.current_thread() is threading.main_thread():
            # The launcher is about to end the others too; its signal would only hide the exit status.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self._raised.set()
        raise WorkerLost(self._message()) from cause

    def _message(self) -> str:
        lost = ", ".join(f"worker {rank} of {self._size} was lost: {why}" for rank, why in self._lost.items())
        return f"{lost}; training stops, the last checkpoint is where to go on"

    def _reach_next(self) -> bool:
        """Whether the next worker's watch can be reached at all: a firewall must not look like a death."""
        try:
            self._link = socket.create_connection(self._places[self._next], _REACH_SECONDS)
            self._ask(self._link, {})
        except OSError as error:
            address, port = self._places[self._next]
            sys.stderr.write(
                f"trainer: warning: worker {self._rank} does not reach worker {self._next} at {address} "
                f"port {port} ({error}); lost workers may be noticed late and without their names\n"
            )
            return False
        self._link.settimeout(self._patience)
        return True

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            self._asking.append(connection)
            threading.Thread(target=self._answer, args=[connection], daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        """Tell one other worker, as often as it asks, that this one lives; hear whom it knows as lost."""
        # It may be lost itself, which others will notice, or a stranger.
        with suppress(OSError, ValueError), connection, connection.makefile("r") as questions:
            while question := questions.readline(_LONGEST_LINE):
                word, lost = json.loads(question)
                if word != self._word:
                    break
                connection.sendall(b"here\n")
                if lost:
                    self._learn({int(rank): why for rank, why in lost.items()})
        self._asking.remove(connection)

    def _follow(self) -> None:
        """Watch the next worker until it takes leave; tell the others if it ends or falls silent before."""
        assert self._link is not None
        said = b""
        try:
            while b"bye" not in said:
                unasked = select.select([self._link], [], [], min(_PAUSE_SECONDS, self._patience))[0]
                said = _hear(self._link) if unasked else self._ask(self._link, {})
        except OSError as error:
            if not self._known.is_set():
                self._call_roll({self._next: _reason(error, self._patience)})

    def _ask(self, connection: socket.socket, lost: dict[int, str]) -> bytes:
        connection.sendall(json.dumps([self._word, lost]).encode() + b"\n")
        return _hear(connection)

    def _call_roll(self, lost: dict[int, str]) -> None:
        """Find all who are lost, then tell all who are not; nobody ends before it was told or told others."""
        lost = dict(lost)
        for message in ({}, lost):
            for rank in ((self._rank + step) % self._size for step in range(1, self._size)):
                if rank in lost or (message is lost and not lost):
                    continue
                try:
                    with socket.create_connection(self._places[rank], _ROLL_CALL_SECONDS) as connection:
                        self._ask(connection, message)
                except OSError as error:
                    lost[rank] = _reason(error, _ROLL_CALL_SECONDS)
        if lost:
            self._learn(lost)

    def _learn(self, lost: dict[int, str]) -> None:
        with self._lock:
            if self._known.is_set():
                return  # the first report is the reason, later ones its consequences
            self._lost = lost
            self._known.set()
        threading.Thread(target=self._end, daemon=True).start()

    def _end(self) -> None:
        """End this process where its main thread does not."""
        if self._raised.wait(_RAISE_SECONDS):
            threading.Event().wait(_END_SECONDS)
        else:
            sys.stderr.write(f"trainer: error: {self._message()}\n")  # at one go, others write there too
            sys.stderr.flush()
        os._exit(WorkerLost.exit_status)

    def _leave_to_parent(self) -> None:
        """In a forked child: its copies of the connections must not outlive the worker."""
        for connection in (self._listener, self._link, *self._asking):
            if connection is not None and connection.fileno() >= 0:
                os.close(connection.detach())  # close() would wait for what reads from it


def _hear(connection: socket.socket) -> bytes:
    """What the worker at the other end says; ConnectionResetError if it has ended."""
    if not (said := connection.recv(64)):
        raise ConnectionResetError
    return said


def _reason(error: OSError, seconds: float) -> str:
    return f"no sign of life for {seconds:g} s" if isinstance(error, TimeoutError) else "its process ended"


def _own_address(meeting_point: str) -> str:
    """The address of this host that others can reach; nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((meeting_point, 9))
        except OSError:
            return socket.gethostname()
        address: str = probe.getsockname()[0]
    # The meeting point is this host, which may know itself only as 127.0.1.1; others know it better.
    return meeting_point if address.startswith("127.") else address
