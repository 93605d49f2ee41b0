"""The sizes of growing updates, the tokens before them, and the rows that they are made of."""

from contextlib import closing
from functools import partial
from itertools import islice, pairwise

import pytest

from bertdata.errors import SettingsError
from bertdata.loaders.modernbert.settings import ModernBertSettings, TokenWarmup
from bertdata.loaders.modernbert.warmup import BatchWarmup
from trainer.config.sections.schedule import RecipeSection
from trainer.config.settings import Config
from trainer.data.examples import Rows
from trainer.data.forms import make_form
from trainer.data.loader import Loader
from trainer.data.opening import open_configured, prepare_for_training
from trainer.data.rows import find_rows
from trainer.run.course import UpdateCourse, iterate_stretches, plan_course
from trainer.run.growing import GrowingLoader

GROWING = {"batch_warmup_from": 4, "batch_warmup_tokens": 2000}


def course_of(tokens: int, *, least: int, most: int, each: int) -> UpdateCourse:
    """From ``least`` to ``most`` micro-batches of ``each`` tokens over so many tokens."""
    warmup = TokenWarmup(sequences=least, tokens=tokens)
    settings = ModernBertSettings(batch_size=most, micro_batch_size=1, max_seq_len=each, warmup=warmup)
    return UpdateCourse(stretches=tuple(iterate_stretches(BatchWarmup(settings), each, most)), tokens=each)


def test_updates_grow_as_the_published_rule_says():
    # ceil(60 / (1 + 2 + 3) * (1, 3, 6)) = 10, 30, 60 tokens, of 2 tokens a micro-batch
    course = course_of(60, least=1, most=4, each=2)
    assert [course.micro_batches(update) for update in range(16)] == [1] * 5 + [2] * 5 + [3] * 5 + [4]
    assert [course.tokens_before(update) for update in (0, 5, 10, 15, 16)] == [0, 10, 30, 60, 68]
    assert [course.next_change(update) for update in (0, 4, 5, 14, 15, 99)] == [5, 5, 10, 15, None, None]
    assert [course.first_update_after(number) for number in (0, 1, 5, 5.5, 15, 30, 31, 34, 35)] == [
        *(0, 1, 5, 6, 10, 15, 16, 16, 17)
    ]


def test_the_rate_rises_with_the_tokens():
    course = UpdateCourse(
        stretches=course_of(60, least=1, most=4, each=2).stretches, tokens=2, warmup_tokens=30
    )
    rate = course.add_warmup(lambda update: 0.5)
    assert [rate(update) for update in (0, 1, 5, 7, 10, 50)] == pytest.approx(
        [0, 0.5 * 2 / 30, 0.5 * 10 / 30, 0.5 * 18 / 30, 0.5, 0.5]
    )


def config_of(data, **keys) -> Config:
    return Config.of(**{"train_data": str(data), "batch_size": 2, "accumulation": 6, "seed": 7} | keys)


def rows_of(config: Config) -> Rows:
    return find_rows(config, prepare_for_training(config, open_configured(config, config.data.train_data)))


def updates_of(config: Config, count: int, *, most=6, workers=1, rank=0, position=(0, 0), step=0):
    rows, size, most = rows_of(config), 2, most // workers
    course = plan_course(config, rows, workers, size, most) if config.recipe != RecipeSection() else None
    form = make_form(rows, batch_size=size, micro_batches=workers * most)
    kind = Loader if course is None else partial(GrowingLoader, course)
    loader = kind(
        rows,
        form=form,
        batch_size=size,
        accumulation=most,
        workers=workers,
        rank=rank,
        seed=config.data.seed,
        position=position,
        first_update=step,
    )
    with closing(loader):
        return list(islice(loader, count)), course


def ids_of(update) -> list[list[int]]:
    """The sequences of each micro-batch of an update, without padding."""
    found = []
    for batch in update.batches:
        ids, ends = batch.input_ids.tolist(), batch.ends.tolist()
        cut = [ids[start:end] for start, end in pairwise(ends) if end <= batch.tokens]
        found.append([one for one in cut if one])
    return found


KINDS = {"stored": {}, "packed at load": {"pack_on_load": True, "pack_window": 64}}


def all_ids(updates) -> list[list[int]]:
    return sorted(one for update in updates for batch in ids_of(update) for one in batch)


def first_ids(config: Config, micro_batches: int) -> list[list[int]]:
    """The examples of the first micro-batches of the order, which updates of one size have."""
    return all_ids(updates_of(config, 1, most=micro_batches)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_growing_updates_take_the_examples_of_the_same_order(training_set, kind):
    growing, course = updates_of(config_of(training_set, **KINDS[kind], **GROWING), 6)
    assert course is not None
    sizes = [len(update.batches) for update in growing]
    assert sizes == [course.micro_batches(number) for number in range(6)]
    assert sizes[0] == 2 < sizes[-1]
    assert all_ids(growing) == first_ids(config_of(training_set, **KINDS[kind]), sum(sizes))


@pytest.mark.parametrize("kind", KINDS)
def test_growing_updates_go_on_from_any_position(training_set, kind):
    config = config_of(training_set, **KINDS[kind], **GROWING)
    whole, _ = updates_of(config, 8)
    for step in (1, 3, 5):
        rest, _ = updates_of(config, 8 - step, position=whole[step - 1].position, step=step)
        assert [ids_of(update) for update in rest] == [ids_of(update) for update in whole[step:]]


def test_two_workers_share_growing_updates(training_set):
    config = config_of(training_set, **GROWING)
    parts = [updates_of(config, 5, workers=2, rank=rank)[0] for rank in (0, 1)]
    sizes = [[len(update.batches) for update in part] for part in parts]
    assert sizes[0] == sizes[1]
    assert sizes[0][0] == 1 < sizes[0][-1]
    wanted = first_ids(config_of(training_set), 2 * sum(sizes[0]))
    assert sorted([*all_ids(parts[0]), *all_ids(parts[1])]) == wanted


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"batch_warmup_from": 3, "batch_warmup_tokens": 9},
            "batch_warmup_from is 3, expected a multiple of 2",
        ),
        ({"batch_warmup_from": 14, "batch_warmup_tokens": 9}, "at most 12"),
        (GROWING | {"bins": 2}, "batch_warmup_from and bins cannot be used together"),
        ({"warmup_tokens": 9, "warmup": 3}, "warmup and warmup_tokens are both given"),
    ],
)
def test_growing_updates_that_cannot_be_are_refused(training_set, keys, said):
    config = config_of(training_set, **keys)
    with pytest.raises(SettingsError, match=said):
        plan_course(config, rows_of(config), 1, 2, 6)


@pytest.mark.parametrize("key", ["batch_warmup_from", "batch_warmup_tokens"])
def test_the_keys_of_growing_updates_need_each_other(key):
    with pytest.raises(SettingsError, match="need each other"):
        Config.of(**{key: 8})
