"""The command line: precedence, switches, phases, refusals, help."""

import re

import pytest

from bertdata.errors import MissingInputError
from tests.support.configurations import assert_keys, config_file, refusal
from trainer.config import flags
from trainer.config.flags import make_config, make_configs
from trainer.config.help import TITLES, make_help
from trainer.config.settings import SECTIONS, Config, get_key_schemas, get_known_names, get_phase_names


def test_the_command_line_overrides_the_file_and_the_file_the_defaults(tmp_path):
    place = config_file(tmp_path, steps=50, seed=7, open_files=3)
    config = make_config(["--config", place, "--seed=9", "--open-files", "2"])
    assert (config.schedule.steps, config.data.seed, config.data.open_files, config.reports.log_every) == (
        50,
        9,
        2,
        Config.of().reports.log_every,
    )


@pytest.mark.parametrize("flag", ["--train-data=x", "--train_data=x"])
def test_hyphens_and_underscores_are_alike_in_flags(flag):
    assert make_config([flag]).data.train_data == "x"


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--wandb", True),
        ("--wandb=true", True),
        ("--wandb=False", False),
        ("--nowandb", False),
        ("--no-wandb", False),
    ],
)
def test_switches_stand_alone_take_a_value_or_are_negated(flag, value):
    assert make_config([flag]).loggers.wandb is value


def test_switches_that_begin_with_no_are_no_negations():
    assert_keys(make_config(["--no-progress-bar", "--no_logs"]), no_progress_bar=True, no_logs=True)


def test_values_may_stand_apart_from_their_flags():
    arguments = ["--start_warmup_step", "-76", "--precision", "fp16", "--steps", "300"]
    assert_keys(make_config(arguments), start_warmup_step=-76, precision="fp16", steps=300)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--warmup=1.5"], "warmup is 1.5, expected an integer (updates) or a share of steps"),
        (["--warmup=1.0"], "warmup is 1.0, expected an integer"),
        (["--warmup=-1"], "warmup is -1, expected 0 or more"),
        (["--warmup=100", "--steps=100"], "expected fewer than steps (100)"),
        (["--base-lerning-rate=1"], "is not a known key; the nearest known is --base-learning-rate"),
        (["--acumulation=1"], "nearest known is --accumulation"),
        (["--steps=many"], "--steps is 'many', expected the type integer"),
        (["--steps=1.5"], "--steps is '1.5', expected the type integer"),
        (["--steps=0"], "steps is 0, expected 1 or more"),
        (["--wandb=perhaps"], "--wandb is 'perhaps', expected the type boolean"),
        (["--device=gpu"], "device is 'gpu', expected one of auto, cpu, cuda, hpu, ipu, xla"),
        (["--clipping=maybe"], "clipping is 'maybe', expected one of usual, none, per_micro_batch"),
        (["--base-learning-rate=nan"], "learning_rate is nan, expected a finite number"),
        (["--base-learning-rate=0"], "learning_rate is 0, expected more than 0"),
        (["--beta1=1"], "beta1 is 1, expected less than 1"),
        (["--max-seq-length=70000"], "max_seq_length is 70000, expected at most 65535"),
        (["--lr-schedule=custom"], "lr_schedule custom needs lr_schedule_by_step"),
        (["--lr-schedule=natural_exponential"], "needs decay_steps"),
        (["--lr-schedule-by-step={}"], "'0' is a required property"),
        (['--lr-schedule-by-step={"0": 1, "x": 2}'], "lr_schedule_by_step: 'x' does not match"),
        (["--noallreduce-post-accumulation", "--allreduce-post-accumulation-fp16"], "needs allreduce_post"),
        (
            ["--init-loss-scale=0.5", "--min-loss-scale=1"],
            "expected min_loss_scale (1) to max_loss_scale (1.67772e+07)",
        ),
        (["--strategy=sharde"], "strategy is 'sharde', expected one of auto, replicated, sharded, pipelined"),
        (["--device-memory=0"], "device_memory is 0, expected more than 0"),
        (["--bandwidth=0"], "bandwidth is 0, expected more than 0"),
        (["--memory-margin=1"], "memory_margin is 1, expected less than 1"),
        (["--min-micro-batches=9", "--max-micro-batches=8"], "is 9, expected at most max_micro_batches (8)"),
        (["--recompute=often"], "recompute is 'often', expected one of auto, always, never"),
        (["--task=nothing"], "task is 'nothing', expected one of pretraining"),
    ],
)
def test_wrong_flags_are_refused_in_one_line(arguments, words):
    assert words in refusal(arguments)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"hidden_sise": 3}, "hidden_sise is not a known key; the nearest known is hidden_size"),
        ({"steps": "100"}, "steps is '100', expected an integer"),
        ({"steps": True}, "steps is True, expected an integer"),
        ({"seed": -1}, "seed is -1, expected 0 or more"),
        ({"available_memory_proportion": 2}, "available_memory_proportion is 2, expected at most 1"),
        ({"warmup": 1.5}, "warmup is 1.5"),
        ({"lanes": 1, "open_files": 2}, "contradict each other"),
    ],
)
def test_wrong_keys_are_refused_with_file_and_key(tmp_path, keys, words):
    place = config_file(tmp_path, **keys)
    message = refusal(["--config", place])
    assert message.startswith(f"{place}: ")
    assert words in message


@pytest.mark.parametrize("text", ["{", "[]", "3", "\xff"])
def test_a_file_that_is_no_json_object_is_refused(tmp_path, text):
    path = tmp_path / "config.json"
    path.write_bytes(text.encode("latin-1"))
    assert refusal(["--config", str(path)]).startswith(f"{path}: is not")


def test_a_missing_file_is_named():
    with pytest.raises(MissingInputError, match=r"nowhere\.json"):
        make_config(["--config", "nowhere.json"])


def test_null_in_a_file_takes_back_nothing_but_what_may_be_null(tmp_path):
    config = make_config(["--config", config_file(tmp_path, batch_size=None, start_from_ckpt=None)])
    assert config.update.batch_size is None
    assert "steps is None" in refusal(["--config", config_file(tmp_path, steps=None)])


def help_text(capsys: pytest.CaptureFixture[str], flag: str) -> str:
    with pytest.raises(SystemExit) as caught:
        make_config([flag])
    assert caught.value.code == 0
    return capsys.readouterr().out


def test_the_full_help_names_every_key_by_section(capsys):
    text = help_text(capsys, "--help-all")
    words = text.replace(",", "").split()
    for name in get_known_names():
        assert words.count(f"--{name.replace('_', '-')}") >= 1
    titles = re.findall(r"^(\S.*):$", text, re.MULTILINE)[1:]
    devices = ["device cuda", "device hpu", "device ipu", "device ipu or xla"]
    assert titles[1 : 1 + len(SECTIONS) + len(devices)] == [*TITLES.values(), *devices]
    assert titles[-1] == "other spellings and older names"


def test_the_short_help_shows_the_keys_that_people_use(capsys):
    shown = re.findall(r"^  (?:-h, )?--([\w-]+)", help_text(capsys, "--help"), re.MULTILINE)
    assert 30 <= len(shown) <= 60
    known = {name.replace("_", "-") for name in get_known_names()}
    own = {name.replace("_", "-") for name in [*get_key_schemas(), *get_phase_names()]}
    assert set(shown) - known == {"help", "help-all", "config"}
    assert set(shown) & known <= own
    assert {"output-dir", "steps", "optimiser", "precision", "train-data-phase2"} <= set(shown)
    assert {"masked-lm-prob", "max-seq-length", "hidden-size", "num-hidden-layers"} <= set(shown)
    assert {"warmup-tokens", "model-type"} <= set(shown)
    assert {"task", "task-dir", "data-dir", "doc-stride"}.isdisjoint(shown)


@pytest.mark.parametrize("flag", ["--help", "--help-all"])
def test_the_help_says_what_a_value_is(capsys, flag):
    text = help_text(capsys, flag)
    for shown in ("--output-dir DIRECTORY", "--model-config FILE", "--steps N [N]", "--seed N", "--rows "):
        assert f"  {shown}" in text
    assert "--base-learning-rate RATE [RATE]" in text
    assert "--compile, --no-compile" in text
    assert re.search(r"--\S+ X\b", text) is None
    assert "mrpc_base" not in text


def test_optimizer_is_another_spelling_of_optimiser(tmp_path):
    assert make_config(["--optimizer=sgd"]).update.optimiser == "sgd"
    assert make_config(["--optimizer_epsilon=1e-3"]).optimiser.optimiser_epsilon == 1e-3
    in_file = ["--config", config_file(tmp_path, optimizer="sgd")]
    assert make_config(in_file).update.optimiser == "sgd"
    assert make_config([*in_file, "--optimiser=adamw"]).update.optimiser == "adamw"
    assert Config.of(optimizer="sgd").update.optimiser == "sgd"
    assert Config.of().changed(optimizer="sgd").update.optimiser == "sgd"
    assert "contradict each other" in refusal(["--optimizer=sgd", "--optimiser=adamw"])
    assert refusal(["--optimizer=sgdd"]).endswith("; the nearest known is sgd")


@pytest.mark.parametrize("name", ["mlprf", "mlperf.json", "nvidia_large_phase"])
def test_a_misspelt_configuration_names_the_nearest(name):
    with pytest.raises(MissingInputError) as caught:
        make_config(["--config", name])
    assert str(caught.value).startswith(f"{name}: ")
    near = "mlperf" if name.startswith("ml") else "nvidia_large_phase"
    assert f"the nearest configuration of the trainer's own is {near}" in str(caught.value)


@pytest.mark.parametrize("unlike", ["--bogus", "--foo"])
def test_a_flag_that_is_like_no_other_names_none(unlike):
    assert refusal([unlike]).endswith(f"{unlike} is not a known key")


@pytest.mark.parametrize("everything", [False, True])
def test_names_stay_whole_in_the_help(everything):
    shown = make_help("trainer", everything).format_help()
    assert not [line for line in shown.splitlines() if line.endswith("-")]
    assert {"lamb-nvlamb,", "lamb-graphcore-pytorch,"} <= set(shown.split())


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (["--device=cudas"], "cuda"),
        (["--optimiser=lamb-nvidea"], "lamb-nvidia"),
        (["--lr-schedule=polynomial"], "polynomial_decay"),
        (["--clipping=per_updates"], "per_update"),
    ],
)
def test_a_misspelt_choice_names_the_nearest(arguments, nearest):
    assert refusal(arguments).endswith(f"; the nearest known is {nearest}")


def test_a_choice_that_is_like_none_names_no_nearest():
    expected = "one of auto, cpu, cuda, hpu, ipu, xla or package.module:NAME"
    assert refusal(["--device=gpu"]) == f"device is 'gpu', expected {expected}"


ALIKE = [
    "--steps 4 --seed=9 --config tiny",
    "--steps 5 7 --batch-size 2 4 --train-data a",
    "--train-data a --train-data b --eval-data none",
    "--train-data-phase1 a --train_data_phase2 b",
    "--phase2 --train-data-phase2 b --steps 3 5",
    "--wandb --tensorboard true --nomllog --no-compile --do_train=false",
    "--start-warmup-step=-76 --warmup 0.1 --num-train-epochs 3",
    "--labels A,B --decay-skips=bias,norm",
    "--attention flash --no-cuda-graphs --batch-size 2",
    "--masking dynamic --mask-share 0.7 --random-share=0.2 --plan p --task mrpc",
    "--output-dir a --output-dir b --description=--x",
]


@pytest.mark.parametrize("line", ALIKE)
def test_the_parser_of_all_flags_reads_words_in_place_alike(monkeypatch, line):
    found = make_configs(line.split())
    monkeypatch.setattr(flags.ArgumentParser, "parse_known_args", refuse)
    assert make_configs(line.split()) == found


def refuse(parser, *words):
    if type(parser) is flags.ArgumentParser:
        raise flags.ArgumentError(None, "refused")
    return PARSE(parser, *words)


PARSE = flags.ArgumentParser.parse_known_args


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--steps", "argument --steps: expected at least one argument"),
        ("--seed --steps 3", "argument --seed: expected one argument"),
        ("--seed 1 2", "unrecognized arguments: 2"),
        ("--steps=3 4", "unrecognized arguments: 4"),
        ("word --seed 1", "unrecognized arguments: word"),
        ("--wandb true false", "unrecognized arguments: false"),
        ("--description -x", "argument --description: expected one argument"),
        ("--config", "argument --config: expected one argument"),
        ("--help=all", "argument -h/--help: ignored explicit argument 'all'"),
    ],
)
def test_words_out_of_place_are_refused_in_one_line(capsys, line, said):
    with pytest.raises(SystemExit) as caught:
        make_config(line.split())
    assert caught.value.code == 2
    prog = "python -m trainer pretrain"
    assert capsys.readouterr().err == f"{prog}: error: {said} (see {prog} --help)\n"
