"""Detection of lost workers by heartbeats.

The communication libraries report only that a connection broke, or wait forever. So each worker keeps a
connection to rank 0, and both sides regularly send a heartbeat. When a process ends, the system closes its
connection. When it hangs, its heartbeats stop.

Rank 0 sends the lost worker's rank to the others. Each of the others detects the loss of rank 0 itself. If a
worker's main thread is blocked in a library, its heartbeat thread ends the process. If a worker on this
machine hangs, the worker that detects it kills it, because launchers would wait for it first.
"""

import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bertdata.io.terminal import say_error
from trainer.errors import WorkerLost
from trainer.workers.stopping import PREFIX, StopAgreement

TIMEOUT_SECONDS = 60.0
"""Seconds without a heartbeat after which a worker counts as lost."""

# seconds to wait, after a library failed, for the message which worker is lost. horovodrun kills after 5 s
_NEWS_SECONDS = 3.0
_RAISE_SECONDS = 2.0  # seconds for the main thread to raise WorkerLost
_END_SECONDS = 10.0  # seconds for the main thread to end after raising WorkerLost


class Heartbeat:
    """This worker's heartbeats, which run in threads.

    stopping: agreement on where to stop, whose messages use the same connections.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.stopping = StopAgreement(rank, size, self._send)
        self._rank, self._size = rank, size
        self._connections: dict[int, socket.socket] = {}
        # handles of the processes of workers that run under the same kernel as this worker
        self._processes: dict[int, int] = {}
        self._message = ""
        self._lock = threading.Lock()
        self._known = threading.Event()
        self._raised = threading.Event()

    def start(self, address: str, broadcast: Callable[[Any], Any]) -> None:
        """Connect to rank 0 and start the threads.

        address: rank 0's address, ignored on other ranks. broadcast: sends rank 0's value to all workers.
        """
        try:
            with socket.create_server(("", 0), backlog=self._size) as listener:
                listener.settimeout(TIMEOUT_SECONDS)
                # The password keeps out other programs that happen to connect to this port.
                port, password = listener.getsockname()[1], secrets.token_hex(8)
                server, password, process = broadcast([(address, port), password, _describe_own_process()])
                # The other ranks connect to rank 0 and send their rank. Rank 0 accepts connections until all
                # have come.
                if self._rank > 0:
                    self._connections[0] = socket.create_connection(server, TIMEOUT_SECONDS)
                    self._send_bytes(f"{password} {self._rank} {_describe_own_process()}".encode())
                    self._note_process(0, process)
                while self._rank == 0 and len(self._connections) < self._size - 1:
                    connection = listener.accept()[0]
                    connection.settimeout(TIMEOUT_SECONDS)
                    # the text may be followed by a heartbeat, a dot
                    received = connection.recv(256).strip(b".")
                    found, number, *process = [*received.decode(errors="replace").split(" "), ""]
                    if found == password:
                        self._connections[int(number)] = connection
                        self._note_process(int(number), process[0])
        except OSError as error:
            raise WorkerLost(f"the workers could not connect: {error}") from error
        for rank, connection in self._connections.items():
            # If a forked child kept the connection open, rank 0 would not notice the end of this worker.
            os.register_at_fork(after_in_child=connection.close)
            threading.Thread(target=self._receive, args=[rank, connection], daemon=True).start()
        threading.Thread(target=self._send_heartbeats, daemon=True).start()
        self.stopping.start()

    @contextmanager
    def naming_lost_workers(self) -> Iterator[None]:
        """Raise WorkerLost instead of the library's error if a lost worker is the reason."""
        try:
            yield
        except RuntimeError as error:
            if not self._known.wait(_NEWS_SECONDS):
                raise
            # The launcher will send SIGTERM to the remaining workers. Ignore it, so that this process ends
            # with its own exit status.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            self._raised.set()
            raise WorkerLost(self._message) from error

    def _note_process(self, rank: int, process: str) -> None:
        """Keep a handle of the worker's process if it runs under this kernel.

        Unlike a process id, a handle never refers to a later process with the same number.
        """
        kernel, _, number = process.rpartition("/")
        with suppress(OSError, AttributeError):  # the process has ended, or the system has no such handles
            if process and kernel == _describe_own_process().rpartition("/")[0]:
                self._processes[rank] = os.pidfd_open(int(number))

    def _kill(self, rank: int) -> None:
        """Kill the worker's process if there is a handle of it."""
        if rank in self._processes:
            with suppress(OSError):
                signal.pidfd_send_signal(self._processes[rank], signal.SIGKILL)

    def close(self) -> None:
        """Announce that this process ends as planned."""
        self._send("bye")

    def _send(self, message: str) -> None:
        """Send a message to rank 0, or from rank 0 to all others."""
        self._send_bytes(f"{message}\n".encode())

    def _send_bytes(self, text: bytes) -> None:
        for connection in self._connections.values():
            with suppress(OSError):  # the receiving thread reports a broken connection
                connection.sendall(text)

    def _send_heartbeats(self) -> None:
        while True:
            self._send_bytes(b".")
            time.sleep(TIMEOUT_SECONDS / 12)

    def _receive(self, rank: int, connection: socket.socket) -> None:
        """Receive messages from a worker until the worker says that it ends, its process ends, its heartbeats
        stop, or it reports a lost worker.
        """
        why = "its process ended"
        text = ""
        try:
            while received := connection.recv(4096):
                # Messages are lines, with heartbeats (dots) before or between them: "..stop end hold" +
                # newline + "..."
                *messages, text = (text + received.decode()).split("\n")
                text = text.lstrip(".")
                for message in (line.lstrip(".") for line in messages):
                    if message == "bye":
                        return
                    if not message.startswith(PREFIX):
                        return self._report(message)
                    self.stopping.receive(message)
        except TimeoutError:
            why = f"no heartbeat for {TIMEOUT_SECONDS:g} s"
            self._kill(rank)
        except OSError:
            pass  # the process ended with unread data
        lost = f"worker {rank} of {self._size} was lost: {why}"
        self._report(f"{lost}; training stops, --resume continues from the last checkpoint")

    def _report(self, message: str) -> None:
        """Send the message about a lost worker to the others.

        Then end this process, unless its main thread ends it first.
        """
        with self._lock:
            if self._message:
                return  # the first report is the cause, later reports follow from it
            self._message = message
        self._send(message)
        self._known.set()
        self.stopping.stop_waiting()
        # The main thread usually fails in the library soon and raises WorkerLost. If it is blocked, print the
        # message here and end the process.
        if self._raised.wait(_RAISE_SECONDS):
            time.sleep(_END_SECONDS)
        else:
            say_error(f"trainer: error: {message}")
        os._exit(WorkerLost.exit_status)


def _describe_own_process() -> str:
    """Return kernel, process namespace and number of this process, or "" if they are not known."""
    try:
        kernel = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{kernel}/{os.readlink('/proc/self/ns/pid')}/{os.getpid()}"
    except OSError:
        return ""
