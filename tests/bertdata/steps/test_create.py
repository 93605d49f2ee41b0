"""create, verify and stats as functions, beside the command line."""

import json
import shutil
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bertdata
from bertdata.errors import (
    DatasetError,
    InputError,
    MissingInputError,
    SettingsError,
    UsageError,
)
from bertdata.steps.progress import StepProgress
from tests.support.commands import SMALL, Program, files_below
from tests.support.paths import EXTRACTED, ROOT
from tests.support.plain_objective import NAME as PLAIN


@pytest.fixture
def command_line(capsys: pytest.CaptureFixture[str]) -> Program:
    """The command line within this process."""
    return Program(capsys)


SETTINGS: dict[str, Any] = {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1}
VOCABULARY = ROOT / "golden" / "vocab.txt"


def same_bytes(one: Path, other: Path) -> bool:
    names = files_below(one)
    assert names
    return names == files_below(other) and all(
        (one / name).read_bytes() == (other / name).read_bytes() for name in names
    )


@pytest.mark.parametrize(
    ("flags", "settings"),
    [
        (SMALL, SETTINGS),
        (
            ("--recipe=nvidia", "--phase=2", "--dupe-factor=1"),
            {"recipe": "nvidia", "phase": 2, "dupe_factor": 1},
        ),
        (
            ("--dialect=google", "--no-lower-case", "--whole-word-mask", "--masked-lm-prob=1", *SMALL),
            {"dialect": "google", "lower_case": False, "whole_word_mask": True, "masked_lm_prob": 1}
            | SETTINGS,
        ),
        (
            ("--mask-share=1", "--random-share=0", "--kept-share=0", *SMALL),
            {"mask_share": 1, "random_share": 0, "kept_share": 0, **SETTINGS},
        ),
        (
            ("--objective=mlm", "--blocks=none", "--max-seq-length=64", "--masked-lm-prob=0.3"),
            {"objective": "mlm", "blocks": "none", "max_seq_length": 64, "masked_lm_prob": 0.3},
        ),
        (
            ("--shuffle=global", "--num-shards=2", *SMALL),
            {"shuffle": "global", "num_shards": 2, **SETTINGS},
        ),
        (
            (f"--objective={PLAIN}", "--sentences-per-example=3", "--max-seq-length=64"),
            {"objective": PLAIN, "sentences_per_example": 3, "max_seq_length": 64},
        ),
    ],
    ids=["small", "nvidia", "google", "shares", "mlm", "shuffled", "plain"],
)
def test_the_function_makes_the_command_lines_bytes(flags, settings, corpus, command_line, tmp_path):
    by_command, by_function = tmp_path / "command", tmp_path / "function"
    words = ["create", *corpus, "--output", by_command, "--vocab", VOCABULARY, *flags]
    assert command_line(*words).status == 0
    made = bertdata.create(corpus, by_function, vocab=VOCABULARY, workers=1, **settings)
    assert same_bytes(by_command, by_function)
    (dataset,) = made.datasets
    assert dataset.directory == str(by_function)
    assert dataset.manifest.dump() == (by_function / "manifest.json").read_bytes()
    assert made.kept == 0


def test_a_recipe_of_two_phases_gives_two_datasets(corpus, tmp_path):
    made = bertdata.create(corpus[0], tmp_path, vocab=VOCABULARY, recipe="nvidia", dupe_factor=1, workers=1)
    assert [dataset.directory for dataset in made.datasets] == [f"{tmp_path}/phase1", f"{tmp_path}/phase2"]


def test_a_pattern_names_parts_and_a_second_run_keeps_every_shard(corpus, tmp_path, capfd):
    pattern = f"{corpus[0].parent}/part-*"
    first = bertdata.create(pattern, tmp_path / "out", vocab=str(VOCABULARY), workers=2, **SETTINGS)
    again = bertdata.create([pattern], f"{tmp_path}/out", vocab=VOCABULARY, **SETTINGS)
    assert (first.kept, again.kept) == (0, 3)
    assert first.datasets == again.datasets
    assert capfd.readouterr() == ("", "")


def test_warnings_are_in_the_result_and_nowhere_else(tmp_path, capfd):
    part = tmp_path / "part"
    part.write_text("One sentence.\nAnother one.\nA third.\n")
    made = bertdata.create(part, tmp_path / "out", vocab=VOCABULARY, workers=1, **SETTINGS)
    (warning,) = made.warnings
    assert warning.startswith(f"{part}: no blank line")
    assert capfd.readouterr() == ("", "")


def test_progress_is_told_from_nothing_to_all(corpus, tmp_path):
    told: list[StepProgress] = []
    bertdata.create(corpus, tmp_path, vocab=VOCABULARY, workers=1, progress=told.append, **SETTINGS)
    total = sum(part.stat().st_size for part in corpus)
    assert (told[0].done, told[-1].done) == (0, total)
    assert [now.done for now in told] == sorted(now.done for now in told)
    assert {now.total for now in told} == {total}
    assert (told[-1].shards, told[-1].all_shards) == (3, 3)
    assert sum(bool(now.finished) for now in told) == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_seq_length": "64"}, "max_seq_length is '64', expected an integer"),
        ({"dupe_factor": 2.0}, "dupe_factor is 2.0, expected an integer"),
        ({"dupe_factor": np.int64(2)}, "expected an integer"),
        ({"random_seed": True}, "random_seed is True, expected an integer"),
        ({"masked_lm_prob": "0.15"}, "masked_lm_prob is '0.15', expected a number"),
        ({"lower_case": 1}, "lower_case is 1, expected True or False"),
        ({"format": "csv"}, "format is 'csv', expected one of tfrecord"),
        ({"dupe_facter": 2}, "create: dupe_facter is not a known key; the nearest known is dupe_factor"),
        ({"blocks": "eos"}, "unknown settings: blocks; the objective bert has none of that name"),
        ({"recipe": "mlperv"}, "recipe 'mlperv' is not known"),
        ({"phase": "1"}, "phase is '1', expected an integer"),
        ({"shuffle": "some"}, "shuffle is 'some', expected one of"),
        ({"shuffle": "global", "num_shards": "2"}, "num_shards is '2', expected an integer"),
        ({"workers": 0}, "workers is 0, expected 1 or more"),
        ({"workers": "2"}, "workers is '2', expected an integer"),
        ({"engine": "cuda"}, "engine is 'cuda', expected native or python"),
        ({"vocab": b"vocab.txt"}, "expected a str or a PathLike"),
        ({"vocab": 7}, "expected a str or a PathLike"),
    ],
)
def test_a_wrong_setting_is_an_error_that_names_it_and_nothing_is_made(change, words, corpus, tmp_path):
    given = {"vocab": VOCABULARY, "workers": 1, **SETTINGS, **change}
    with pytest.raises(SettingsError) as refused:
        bertdata.create(corpus, tmp_path / "out", **given)
    assert words in str(refused.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("parts", [7, [b"part"], [None]])
def test_what_is_no_path_is_a_settings_error(parts, tmp_path):
    with pytest.raises(SettingsError, match="expected a str or a PathLike"):
        bertdata.create(parts, tmp_path, vocab=VOCABULARY)


def test_errors_are_the_packages_own(corpus, tmp_path):
    with pytest.raises(MissingInputError, match="no-part: no such file"):
        bertdata.create(tmp_path / "no-part", tmp_path / "out", vocab=VOCABULARY)
    with pytest.raises(MissingInputError, match="no parts given"):
        bertdata.create([], tmp_path / "out", vocab=VOCABULARY)
    bad = tmp_path / "bad"
    bad.write_bytes(b"a sentence\n\xff\n")
    with pytest.raises(InputError, match="line 2"):
        bertdata.create(bad, tmp_path / "out", vocab=VOCABULARY, workers=1)
    bertdata.create(corpus[0], tmp_path / "out", vocab=VOCABULARY, workers=1, **SETTINGS)
    with pytest.raises(DatasetError):
        bertdata.create(corpus[0], tmp_path / "out", vocab=VOCABULARY, workers=1)
    assert issubclass(bertdata.errors.DatasetError, UsageError)


def test_a_thread_can_create_and_signal_handlers_stay_as_they_were(corpus, tmp_path):
    watched = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in watched]
    results = []

    def work() -> None:
        results.append(bertdata.create(corpus, tmp_path / "b", vocab=VOCABULARY, workers=2, **SETTINGS))

    bertdata.create(corpus, tmp_path / "a", vocab=VOCABULARY, workers=2, **SETTINGS)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(results) == 1
    assert same_bytes(tmp_path / "a", tmp_path / "b")
    assert [signal.getsignal(number) for number in watched] == before
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) & set(watched) == set()


# --- verify and stats -----------------------------------------------------------------------------


def test_verify_reports_what_the_command_prints(training_set, command_line, tmp_path):
    report = bertdata.verify(training_set)
    assert report.sound
    assert json.loads(command_line("verify-md5", training_set, "--json").out) == report.as_json()
    broken = shutil.copytree(training_set, tmp_path / "broken")
    (broken / "part-00000-of-00003.tfrecord").write_bytes(b"no shard")
    told: list[StepProgress] = []
    faulty = bertdata.verify(broken, progress=told.append)
    assert not faulty.sound
    assert "part-00000-of-00003.tfrecord" in str(faulty.faults[0])
    assert [now.done for now in told] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"table": "mlperf-v1.0", "content": True}, "table and content exclude each other"),
        ({"table": "mlperf-v1.0", "chain": True}, "table and chain exclude each other"),
        ({"source": "parts"}, "source goes with chain"),
        ({"table": "mlperf"}, "'mlperf'"),
        ({"objective": "gpt"}, "objective 'gpt' is not known"),
    ],
)
def test_verify_refuses_what_does_not_go_together(settings, words, training_set):
    with pytest.raises(UsageError) as refused:
        bertdata.verify(training_set, **settings)
    assert words in str(refused.value)


def test_stats_counts_what_the_command_prints(training_set, command_line):
    (found,) = bertdata.stats(training_set, workers=1)
    printed = json.loads(command_line("stats", training_set, "--json").out)
    assert printed == {"datasets": [json.loads(json.dumps(found.as_json()))]}


# --- extract and segment --------------------------------------------------------------------------


def test_extract_and_segment_make_the_command_lines_bytes(command_line, punkt_tables, tmp_path):
    dump = ROOT / "golden" / "dump" / "allerwiki-20200101-pages-articles.xml"
    flags = ("--eval-articles", 5, "--block-size", 1, "--workers", 1)
    assert command_line("extract", dump, "--output", tmp_path / "a", "--workers", 1).status == 0
    assert command_line("segment", tmp_path / "a", "--output", tmp_path / "b", *flags).status == 0
    told: list[StepProgress] = []
    report = bertdata.extract(dump, tmp_path / "x", workers=1, progress=told.append)
    counts = bertdata.segment(
        tmp_path / "x", tmp_path / "y", eval_articles=5, block_size=1, workers=1, progress=told.append
    )
    assert same_bytes(tmp_path / "a", tmp_path / "x")
    assert same_bytes(tmp_path / "b", tmp_path / "y")
    assert (report.pages, counts.withheld) == (report.written + sum(report.skipped.values()), 5)
    stages = ["collecting templates", "extracting articles", "segmenting"]
    assert list(dict.fromkeys(now.stage for now in told)) == stages
    assert told[-1].done == told[-1].total


def test_segment_takes_the_releases_of_nltk_and_current(command_line, punkt_tables, tmp_path):
    given = ("--eval-articles", 5, "--workers", 1, "--punkt")
    assert command_line("segment", EXTRACTED, "--output", tmp_path / "a", *given, "current").status == 0
    for punkt, name in (("3.10.0", "b"), ("current", "c"), ("3.10.4", "d")):
        bertdata.segment(EXTRACTED, tmp_path / name, eval_articles=5, punkt=punkt, workers=1)
    assert same_bytes(tmp_path / "a", tmp_path / "b")
    assert same_bytes(tmp_path / "a", tmp_path / "c")
    variants = [json.loads((tmp_path / n / "manifest.json").read_text())["punkt"]["variant"] for n in "ad"]
    assert variants == ["3.10.0", "3.10.4"]
    part = "part-00000-of-00500"  # the golden articles hold quotes and guillemets
    assert (tmp_path / "a" / part).read_bytes() != (tmp_path / "d" / part).read_bytes()
    refused = command_line("segment", EXTRACTED, "--output", tmp_path / "a", *given, "3.5")
    assert refused.status == 2
    assert all(name in refused.err for name in ("3.4.5", "3.10.0", "3.10.4", "current"))
    with pytest.raises(SettingsError, match=r"'3.5', expected one of 3.4.5, 3.10.0, 3.10.4, current"):
        bertdata.segment(EXTRACTED, tmp_path / "e", punkt="3.5")


def test_extract_takes_a_day_as_text_and_refuses_what_is_none(tmp_path):
    dump = ROOT / "golden" / "dump" / "allerwiki-20200101-pages-articles.xml"
    report = bertdata.extract(dump, tmp_path / "x", date="2021-02-03", templates=False, workers=1)
    assert report.date == "2021-02-03"
    with pytest.raises(SettingsError, match="date is 'yesterday', expected YYYY-MM-DD"):
        bertdata.extract(dump, tmp_path / "y", date="yesterday")
