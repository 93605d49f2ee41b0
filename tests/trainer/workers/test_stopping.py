"""The agreement to stop: all workers stop after the same exchange, whoever asks, whenever."""

import random
import threading
from collections.abc import Callable
from queue import SimpleQueue

import pytest

from trainer.errors import StopRequested
from trainer.workers.collective import Stopping
from trainer.workers.stopping import PREFIX, StopAgreement

MICRO_BATCHES = 4
SECONDS = 60  # until a deadlock counts as one


class Network:
    """Agreements joined by queues that keep the order of messages, as connections do."""

    def __init__(self, size: int) -> None:
        self.inboxes = [SimpleQueue[str | None]() for _ in range(size)]
        self.agreements = [StopAgreement(rank, size, self._sender(rank)) for rank in range(size)]
        self.messages = 0
        self._threads = [threading.Thread(target=self._deliver, args=[rank]) for rank in range(size)]
        for agreement, thread in zip(self.agreements, self._threads, strict=True):
            agreement.start()
            thread.start()

    def _sender(self, rank: int) -> Callable[[str], None]:
        def send(message: str) -> None:
            self.messages += 1
            for inbox in self.inboxes[1:] if rank == 0 else self.inboxes[:1]:
                inbox.put(message)

        return send

    def _deliver(self, rank: int) -> None:
        while (message := self.inboxes[rank].get()) is not None:
            self.agreements[rank].receive(message)

    def close(self) -> None:
        for inbox, thread in zip(self.inboxes, self._threads, strict=True):
            inbox.put(None)
            thread.join(SECONDS)


def train(network: Network, requests: dict[int, int], updates: int = 200) -> list[int]:
    """Each worker's number of whole updates.

    requests: by rank, the micro-batch (from 0, over all updates) in which the worker is asked to stop.
    """
    reduction = threading.Barrier(len(network.agreements), timeout=SECONDS)
    made = [0] * len(network.agreements)

    def work(rank: int) -> None:
        agreement = network.agreements[rank]
        try:
            for micro_batch in range(updates * MICRO_BATCHES):
                is_last = micro_batch % MICRO_BATCHES == MICRO_BATCHES - 1
                agreement.check(exchanges=is_last)
                if requests.get(rank) == micro_batch:
                    agreement.request()
                if is_last:
                    reduction.wait()  # BrokenBarrierError where another worker never comes
                    made[rank] += 1
        except StopRequested:
            pass

    threads = [threading.Thread(target=work, args=[rank]) for rank in range(len(made))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not reduction.broken
    return made


@pytest.mark.parametrize("seed", range(30))
def test_all_workers_make_the_same_updates_whoever_is_asked_to_stop_and_whenever(seed):
    draw = random.Random(seed)
    size = draw.choice([2, 3, 5])
    ranks = draw.sample(range(size), draw.randint(1, size))
    requests = {rank: draw.randrange(40 * MICRO_BATCHES) for rank in ranks}
    network = Network(size)
    made = train(network, requests)
    network.close()
    assert len(set(made)) == 1, made
    assert made[0] >= min(requests.values()) // MICRO_BATCHES


def wait_until_agreed(network: Network) -> None:
    for agreement in network.agreements:
        with agreement._changed:
            assert agreement._changed.wait_for(lambda one=agreement: one.is_agreed, SECONDS)


def test_a_worker_that_entered_the_reduction_makes_the_others_finish_the_update():
    network = Network(2)
    ahead, behind = network.agreements
    ahead.check(exchanges=True)  # update 1's reduction
    behind.check(exchanges=False)
    behind.request()
    wait_until_agreed(network)
    with pytest.raises(StopRequested):
        ahead.check(exchanges=False)
    behind.check(exchanges=False)
    behind.check(exchanges=True)
    with pytest.raises(StopRequested):
        behind.check(exchanges=False)
    network.close()


@pytest.mark.parametrize("exchanges", [False, True])
def test_workers_of_which_none_entered_the_reduction_stop_within_the_update(exchanges):
    network = Network(2)
    for agreement in network.agreements:
        agreement.check(exchanges=False)
    network.agreements[1].request()
    wait_until_agreed(network)
    for agreement in network.agreements:
        with pytest.raises(StopRequested):
            agreement.check(exchanges=exchanges)
    network.close()


def test_while_nobody_asks_nothing_is_sent():
    network = Network(3)
    assert train(network, {}, updates=50) == [50] * 3
    assert network.messages == 0
    network.close()


def test_a_worker_that_waits_for_a_lost_one_goes_on_to_the_exchange_that_names_it():
    agreement = StopAgreement(0, 2, lambda message: None)  # nobody answers
    agreement.receive(f"{PREFIX}end asked")
    entered = threading.Thread(target=agreement.check, kwargs={"exchanges": True})
    entered.start()
    entered.join(0.2)
    assert entered.is_alive()
    agreement.stop_waiting()
    entered.join(SECONDS)
    assert not entered.is_alive()


def test_alone_a_worker_stops_at_its_next_check():
    stopping = Stopping()
    stopping.check(exchanges=True)
    stopping.request()
    with pytest.raises(StopRequested):
        stopping.check(exchanges=False)


def test_a_group_of_one_stops_too():
    network = Network(1)
    made = train(network, {0: 4 * MICRO_BATCHES}, updates=200_000)
    assert 4 <= made[0] < 200_000
    network.close()
