"""The forecast of a machine's files: when they are needed, by whom, and how many at once."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.dataset.reader import SourceShare
from tests.support.needs import find_next_need, list_needs
from trainer.data.cache.forecast import NEVER, Margins, MixtureForecast, OrderForecast, make_forecast
from trainer.data.mixture import MixedOrder
from trainer.data.order import Dealer, Order, Position
from trainer.data.reading import Reading
from trainer.data.streams import StreamDealer, StreamOrder

SIZES = st.lists(st.integers(0, 40), min_size=1, max_size=9).filter(any)


def make_order(sizes: list[int], open_files: int, chunk_rows: int) -> Order:
    files = [(f"part-{number}", size) for number, size in enumerate(sizes)]
    if chunk_rows:
        return StreamOrder(files, seed=3, reading=Reading(open_files, chunk_rows))
    return Order(files, seed=3, open_files=open_files)


@given(
    sizes=SIZES,
    open_files=st.integers(1, 5),
    chunk_rows=st.sampled_from([0, 8, 256]),
    epoch=st.integers(0, 2),
)
def test_the_spans_of_files_are_where_the_order_finds_their_examples(sizes, open_files, chunk_rows, epoch):
    order = make_order(sizes, open_files, chunk_rows)
    spans = order.list_spans(epoch)
    found = dict[int, tuple[int, int]]()
    for part in order.find(Position(epoch), np.arange(order.examples)):  # one part for each chunk
        first, last = found.get(part.file, (order.examples, -1))
        found[part.file] = min(first, int(part.targets.min())), max(last, int(part.targets.max()))
    assert {file: (int(spans.firsts[file]), int(spans.lasts[file])) for file in found} == found
    empty = [file for file, size in enumerate(sizes) if not size]
    assert spans.firsts[empty].tolist() == spans.queues[empty].tolist() == [-1] * len(empty)
    # files of the same queue never overlap
    for queue in range(order.queues):
        own = np.flatnonzero(spans.queues == queue)
        own = own[np.argsort(spans.firsts[own])]
        assert (spans.firsts[own][1:] > spans.lasts[own][:-1]).all()


@given(
    sizes=SIZES,
    open_files=st.integers(1, 4),
    chunk_rows=st.sampled_from([0, 8]),
    after=st.integers(0, 30),
    share=st.floats(0, 1),
)
def test_the_next_need_is_that_of_the_twin(sizes, open_files, chunk_rows, after, share):
    order = make_order(sizes, open_files, chunk_rows)
    forecast = OrderForecast(order, Margins(before=5, after=min(after, order.examples)))
    place = int(share * 2 * order.examples)
    needs = list_needs(order, 4, whole=not chunk_rows)
    found = forecast.find_next(place)
    for file in range(len(sizes)):
        wanted = find_next_need(needs, file, place, min(after, order.examples))
        assert found[file] == (NEVER if wanted is None else wanted)
    assert forecast.is_near(place, found).tolist() == [
        need != NEVER and need - 5 <= place for need in found.tolist()
    ]


@given(
    sizes=SIZES,
    open_files=st.integers(1, 4),
    chunk_rows=st.sampled_from([0, 8]),
    before=st.integers(0, 20),
    after=st.integers(0, 20),
)
def test_what_is_needed_at_once_is_the_most_of_any_place(sizes, open_files, chunk_rows, before, after):
    order = make_order(sizes, open_files, chunk_rows)
    of_files = np.arange(1, len(sizes) + 1) * 10
    found = OrderForecast(order, Margins(before, after)).find_at_once(of_files, 0)
    needs = list_needs(order, 2, whole=not chunk_rows)
    most = max(
        sum(of_files[need.file] for need in needs if need.begin - before <= place <= need.end + after)
        for place in range(-before, 2 * order.examples + after)
    )
    used = [number for number, size in enumerate(sizes) if size]
    assert found.bytes == min(most, sum(of_files[used]))
    assert found.files <= len(used)


def stream_dealer(order: StreamOrder, workers: int, rank: int) -> StreamDealer:
    return StreamDealer(
        order=order, lengths=lambda file: np.zeros(0), by_lengths=False, world_size=workers, rank=rank,
        micro_batches=workers, batch_size=8, seed=3, most_rows=64, ahead=64,
    )  # fmt: skip


@pytest.mark.parametrize("machines", [1, 2, 4])
def test_a_machine_needs_the_files_of_its_workers_streams(machines):
    order = make_order([640] * 32, 32, 64)
    workers, each = 8, 8 // machines
    for machine in range(machines):
        ranks = range(machine * each, (machine + 1) * each)
        dealers = [stream_dealer(order, workers, rank) for rank in ranks]
        forecast = make_forecast(dealers)
        read = set[int]()
        for dealer in dealers:
            position = Position()
            together = dealer.updates * dealer.update_rows
            # the last updates of an epoch reach into the next one, which has another order
            while position.epoch == 0 and position.examples + together <= order.examples:
                read |= {file for file, _ in next(iter(dealer.find(position))).now}
                position = order.advance(position, together)
        needed = set(np.flatnonzero(forecast.find_needed(0)).tolist())
        assert read <= needed
        assert len(needed) <= 32 // machines + (2 if machines > 1 else 0)
        unneeded = np.flatnonzero(~forecast.find_needed(0) & ~forecast.find_needed(1))
        assert (forecast.find_next(0)[unneeded] == NEVER).all()


@given(
    sizes=st.lists(st.integers(30, 90), min_size=12, max_size=30),
    open_files=st.integers(2, 12),
    rank=st.integers(0, 2),
)
def test_a_file_is_needed_if_a_sampled_place_near_it_reads_its_stream(sizes, open_files, rank):
    """Near: between the last sampled place before the file and the first one after it."""
    order = make_order(sizes, open_files, 8)
    dealer = replace(stream_dealer(order, 3, rank), batch_size=1)
    forecast = OrderForecast(order, Margins(0, 0), [dealer])
    places = sorted({int(part * (order.examples - 1) / 15) for part in range(16)})
    spans = order.list_spans(1)
    for file, found in enumerate(forecast.find_needed(1).tolist()):
        first, last = int(spans.firsts[file]), int(spans.lasts[file])
        begin = max((place for place in places if place <= first), default=0)
        end = min((place for place in places if place >= last), default=order.examples)
        near = [place for place in places if begin <= place <= end]
        assert found == any(
            int(spans.queues[file]) in dealer.find_own_streams(Position(1, place)) for place in near
        )


def test_a_mixture_needs_the_files_of_each_source_in_its_own_order():
    files = [("a", 40), ("b", 50), ("c", 30), ("d", 30)]
    sources = [SourceShare(name="x", weight=3, shards=2), SourceShare(name="y", weight=1, shards=2)]
    order = MixedOrder(files, sources=sources, seed=1, open_files=1)
    forecast = make_forecast([_dealer(order)])
    assert isinstance(forecast, MixtureForecast)
    found = forecast.find_next(0)
    # the first examples come from one file of each source, and the others are needed later
    first = {part.file for part in order.find(Position(), np.arange(8)) if len(part.rows)}
    assert len(first) == 2
    assert {int(file) for file in np.argsort(found)[:2]} == first
    assert sorted(found)[:2] == [0, 0]
    # every example of a source is four of the mixture, or 4/3
    firsts = {}
    for part in order.find(Position(), np.arange(150)):
        if len(part.rows):
            firsts.setdefault(part.file, int(part.targets.min()))
    for file, place in firsts.items():
        assert abs(int(found[file]) - place) <= 4
    assert forecast.find_at_once(np.array([1, 1, 1, 1]), 0).files <= 4


def _dealer(order: Order) -> Dealer:
    return Dealer(
        order=order, lengths=lambda file: np.zeros(0), by_lengths=False, world_size=1, rank=0,
        micro_batches=1, batch_size=1, seed=1, most_rows=1, ahead=1,
    )  # fmt: skip


def test_the_margins_of_a_source_are_its_share_of_the_mixtures():
    files = [("a", 40), ("b", 50), ("c", 30), ("d", 30)]
    sources = [SourceShare(name="x", weight=3, shards=2), SourceShare(name="y", weight=1, shards=2)]
    order = MixedOrder(files, sources=sources, seed=1, open_files=2)
    parts = MixtureForecast(order, Margins(before=100, after=40))._parts
    # 3/4 and 1/4; each source also has an example of each of its two files at hand
    assert [one._margins for one in parts] == [Margins(77, 30), Margins(27, 10)]


def test_margins_grow_with_windows_and_updates():
    order = make_order([100] * 4, 2, 0)
    plain = make_forecast([_dealer(order)])
    windowed = make_forecast([_dealer(order)], window=50)
    large = make_forecast([replace(_dealer(order), micro_batches=10)])
    margins = [one._margins for one in (plain, windowed, large)]
    assert margins[1] == Margins(margins[0].before + 100, margins[0].after + 50)
    assert margins[2] == Margins(10 * margins[0].before, 10 * margins[0].after)
