"""Detection of lost workers by heartbeats.

If a worker is lost, the communication libraries only report a broken connection, or wait forever. So each
worker keeps a connection to rank 0, and both sides send heartbeats at regular times. When a process ends, the
operating system closes its connection. When it hangs, its heartbeats stop.

Rank 0 tells the others the rank of the lost worker. They detect the loss of rank 0 themselves. If a worker's
main thread is blocked in a library, the thread for heartbeats ends the process. If a worker on the same
machine hangs, it is killed, because launchers would otherwise wait for it.
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
"""A worker is considered lost after this number of seconds without a heartbeat."""

# Seconds to wait for the message that names the lost worker, after a library has failed. horovodrun kills the
# process after 5 s.
_NEWS_SECONDS = 3.0
_RAISE_SECONDS = 2.0  # seconds in which the main thread must raise WorkerLost
_END_SECONDS = 10.0  # seconds in which the main thread must end after it has raised WorkerLost


class Heartbeat:
    """This worker's heartbeats to and from the other workers, which run in threads.

    stopping: agreement of the workers on where to stop. Its messages use the same connections.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.stopping = StopAgreement(rank, size, self._send)
        self._rank, self._size = rank, size
        self._connections: dict[int, socket.socket] = {}
        # Handles of the processes of the other workers on this machine, by rank.
        self._processes: dict[int, int] = {}
        self._message = ""
        self._lock = threading.Lock()
        self._known = threading.Event()
        self._raised = threading.Event()

    def start(self, address: str, broadcast: Callable[[Any], Any]) -> None:
        """Connect to rank 0 and start the threads.

        address: address of rank 0. It is ignored on all other ranks.
        broadcast: function that returns rank 0's value on all workers.
        """
        try:
            with socket.create_server(("", 0), backlog=self._size) as listener:
                listener.settimeout(TIMEOUT_SECONDS)
                # The password keeps out other programs that happen to connect to this port.
                port, password = listener.getsockname()[1], secrets.token_hex(8)
                server, password, process = broadcast([(address, port), password, _describe_own_process()])
                # All other ranks connect to rank 0 and send their rank. Rank 0 accepts connections until all
                # have come.
                if self._rank > 0:
                    self._connections[0] = socket.create_connection(server, TIMEOUT_SECONDS)
                    self._send_bytes(f"{password} {self._rank} {_describe_own_process()}".encode())
                    self._note_process(0, process)
                while self._rank == 0 and len(self._connections) < self._size - 1:
                    connection = listener.accept()[0]
                    connection.settimeout(TIMEOUT_SECONDS)
                    # The received text may end with a heartbeat, which is a dot.
                    received = connection.recv(256).strip(b".")
                    found, number, *process = [*received.decode(errors="replace").split(" "), ""]
                    if found == password:
                        self._connections[int(number)] = connection
                        self._note_process(int(number), process[0])
        except OSError as error:
            raise WorkerLost(f"the workers could not connect: {error}") from error
        for rank, connection in self._connections.items():
            # Close the connection in forked processes. While one of them kept it open, rank 0 would not
            # notice the end of this worker.
            os.register_at_fork(after_in_child=connection.close)
            threading.Thread(target=self._receive, args=[rank, connection], daemon=True).start()
        threading.Thread(target=self._send_heartbeats, daemon=True).start()
        self.stopping.start()

    @contextmanager
    def naming_lost_workers(self) -> Iterator[None]:
        """Replace errors of a library in the block by WorkerLost if they come from a lost worker."""
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
        """Keep a handle of a worker's process, if it runs under the same kernel as this process.

        A process id may be given to another process later. A handle always means the same process.
        rank: rank of the worker.
        process: description that the worker has sent (see ``_describe_own_process``).
        """
        kernel, _, number = process.rpartition("/")
        # the process has already ended, or the operating system has no such handles
        with suppress(OSError, AttributeError):
            if process and kernel == _describe_own_process().rpartition("/")[0]:
                self._processes[rank] = os.pidfd_open(int(number))

    def _kill(self, rank: int) -> None:
        """Kill the process of the worker with this rank, if there is a handle of it."""
        if rank in self._processes:
            with suppress(OSError):
                signal.pidfd_send_signal(self._processes[rank], signal.SIGKILL)

    def close(self) -> None:
        """Tell the other workers that this process is about to end as planned."""
        self._send("bye")

    def _send(self, message: str) -> None:
        """Send a message from this worker to rank 0, or from rank 0 to all other workers."""
        self._send_bytes(f"{message}\n".encode())

    def _send_bytes(self, text: bytes) -> None:
        for connection in self._connections.values():
            with suppress(OSError):  # the thread that receives from this connection reports that it is broken
                connection.sendall(text)

    def _send_heartbeats(self) -> None:
        while True:
            self._send_bytes(b".")
            time.sleep(TIMEOUT_SECONDS / 12)

    def _receive(self, rank: int, connection: socket.socket) -> None:
        """Receive a worker's messages, until it announces its end, ends without that, hangs, or reports a
        lost worker.

        rank: rank of the worker.
        connection: the connection to it.
        """
        why = "its process ended"
        text = ""
        try:
            while received := connection.recv(4096):
                # A message is a line. Heartbeats (dots) may come before a message or between two: "..stop end
                # hold" + newline + "..."
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
            pass  # the process has ended before it had read everything
        lost = f"worker {rank} of {self._size} was lost: {why}"
        self._report(f"{lost}; training stops, --resume continues from the last checkpoint, if there is one")

    def _report(self, message: str) -> None:
        """Tell the other workers which worker is lost, then end this process.

        The process is ended here only if its main thread does not end it first.
        message: the error message.
        """
        with self._lock:
            if self._message:
                # only the first report names the cause, because the loss of a worker leads to further ones
                return
            self._message = message
        self._send(message)
        self._known.set()
        self.stopping.stop_waiting()
        # Usually the library fails soon in the main thread, which then raises WorkerLost. If the main thread
        # is blocked, print the message here and end the process.
        if self._raised.wait(_RAISE_SECONDS):
            time.sleep(_END_SECONDS)
        else:
            say_error(f"trainer: error: {message}")
        os._exit(WorkerLost.exit_status)


def _describe_own_process() -> str:
    """Return a description of this process: kernel, process namespace and process id. "" if they are not
    known.
    """
    try:
        kernel = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{kernel}/{os.readlink('/proc/self/ns/pid')}/{os.getpid()}"
    except OSError:
        return ""
