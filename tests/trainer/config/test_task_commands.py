"""Published command lines of other programs' fine-tuning are accepted and mean what they say."""

from shlex import split

import pytest

from bertdata.errors import SettingsError
from tests.support.configurations import assert_keys
from trainer.config.settings import Config
from trainer.config.task_config import make_task_config, task_flags

GOOGLE_FILES = (
    "--vocab_file=base/vocab.txt --bert_config_file=base/bert_config.json --init_checkpoint=base/bert.ckpt "
)
SQUAD_FILES = "--train_file=squad/train-v1.1.json --predict_file=squad/dev-v1.1.json "
SQUAD_KEYS = {"task": "squad", "task_train_file": "squad/train-v1.1.json", "max_seq_length": 384}
ADAMW = {
    "optimiser": "adamw-bert",
    "schedule": "mlperf",
    "clipping_point": "per_update",
    "warmup": 0.1,
    "weight_decay": 0.01,
}

COMMANDS = {
    "habana base mrpc": (
        "--model_name_or_path base --mode eager --dataset_name mrpc --task_name mrpc --data_type fp32 "
        "--num_train_epochs 3 --batch_size 32 --max_seq_length 128 --learning_rate 2e-5 --do_eval",
        {
            "task": "mrpc",
            "start_from_ckpt": "base",
            "mode": "eager",
            "precision": "fp32",
            "num_train_epochs": 3,
            "batch_size": 32,
            "max_seq_length": 128,
            "base_learning_rate": 2e-5,
            "do_eval": True,
            "do_train": True,
            **ADAMW,
        },
        ["mode"],
    ),
    "habana large squad, 8 cards": (
        "--model_name_or_path large --mode lazy --task_name squad --data_type bf16 --num_train_epochs 2 "
        "--batch_size 24 --max_seq_length 384 --learning_rate 3e-5 --do_eval --data_dir squad "
        "--world_size 8 --dist --logging_steps=20",
        {
            "task": "squad",
            "start_from_ckpt": "large",
            "mode": "lazy",
            "precision": "bf16",
            "batch_size": 24,
            "task_dir": "squad",
            "train_data": None,
            "world_size": 8,
            "dist": True,
            "log_every": 20,
            "do_train": True,
        },
        ["mode"],
    ),
    "habana run_qa.py": (
        "--hmp --hmp_bf16=./ops_bf16_bert.txt --hmp_fp32=./ops_fp32_bert.txt --doc_stride=128 "
        "--use_lazy_mode --per_device_train_batch_size=24 --per_device_eval_batch_size=8 "
        "--dataset_name=squad --use_fused_adam --use_fused_clip_norm --save_steps=5000 --use_habana "
        "--max_seq_length=384 --learning_rate=3e-05 --num_train_epochs=2 --output_dir=squad --seed=42 "
        "--logging_steps=20 --overwrite_output_dir --do_train --do_eval "
        "--model_name_or_path=bert-large-uncased-whole-word-masking",
        {
            "task": "squad",
            "device": "hpu",
            "use_lazy_mode": True,
            "precision": "bf16",
            "batch_size": 24,
            "eval_batch_size": 8,
            "checkpoint_every": 5000,
            "start_from_ckpt": "bert-large-uncased-whole-word-masking",
        },
        ["hmp_bf16", "hmp_fp32", "overwrite_output_dir", "use_fused_adam", "use_fused_clip_norm"],
    ),
    "habana run_squad.py": (
        "--do_train --bert_model=bert-large-uncased --config_file=./bert_config.json --use_habana "
        "--use_fused_adam --do_lower_case --output_dir=results --json-summary=results/dllogger.json "
        "--train_batch_size=24 --predict_batch_size=8 --seed=1 --max_seq_length=384 --doc_stride=128 "
        "--max_steps=-1 --learning_rate=3e-5 --num_train_epochs=2 --init_checkpoint=bert.pt "
        f"--vocab_file=vocab.txt {SQUAD_FILES} --skip_cache --do_predict --do_eval "
        "--eval_script=squad/evaluate-v1.1.py --log_freq 20 --autocast",
        {
            **SQUAD_KEYS,
            "task_eval_file": "squad/dev-v1.1.json",
            "do_predict": False,  # evaluation writes the predictions
            "device": "hpu",
            "precision": "bf16",
            "batch_size": 24,
            "accumulation": 1,
            "eval_batch_size": 8,
            "num_train_epochs": 2,
            "steps_this_run": None,
            "vocab": "vocab.txt",
            "lower_case": True,
            "json_summary": "results/dllogger.json",
        },
        ["bert_model", "eval_script", "skip_cache", "use_fused_adam"],
    ),
    "habana inference": (
        "--bert_model=bert-large-uncased --autocast --config_file=./bert_config.json --use_habana "
        "--do_lower_case --output_dir=results --predict_batch_size=24 --init_checkpoint=bert.pt "
        "--vocab_file=vocab.txt --do_predict --fp16 --predict_file=squad/dev-v1.1.json --do_eval "
        "--eval_script=squad/evaluate-v1.1.py --use_hpu_graphs",
        {
            "task": "squad",
            "do_train": False,
            "do_eval": True,
            "task_eval_file": "squad/dev-v1.1.json",
            "precision": "fp16",
        },
        ["bert_model", "eval_script", "use_hpu_graphs"],
    ),
    "habana tensorflow": (
        "--command finetuning --model_variant large --data_type bf16 --test_set mrpc "
        "--dataset_path glue/MRPC --epochs 3 --max_seq_length 128 --batch_size 64 --learning_rate 2e-5 "
        "--output_dir mrpc_output --use_horovod 8 --save_ckpt_steps 100 --checkpoint_folder bert-large",
        {
            "task": "mrpc",
            "precision": "bf16",
            "task_dir": "glue/MRPC",
            "num_train_epochs": 3,
            "batch_size": 64,
            "world_size": 8,
            "dist": True,
            "checkpoint_every": 100,
            "start_from_ckpt": "bert-large",
            "do_train": True,
        },
        ["command"],
    ),
    "nvidia run_squad.py": (
        f"--init_checkpoint=bert.pt --do_train {SQUAD_FILES} --train_batch_size=4 --do_predict "
        "--predict_batch_size=4 --eval_script=squad/evaluate-v1.1.py --do_eval --do_lower_case "
        "--bert_model=bert-large-uncased --learning_rate=3e-5 --warmup_proportion=0.1 --seed=1 "
        "--num_train_epochs=2.0 --max_seq_length=384 --doc_stride=128 --output_dir=results "
        "--vocab_file=vocab.txt --config_file=large.json --max_steps=50 "
        "--gradient_accumulation_steps=2 --fp16",
        {
            **SQUAD_KEYS,
            "task_eval_file": "squad/dev-v1.1.json",
            "batch_size": 2,
            "accumulation": 2,
            "precision": "fp16",
            "model_config": "large.json",
            "steps_this_run": 50,  # the schedule stays that of the epochs
            "num_train_epochs": 2,
            **ADAMW,
        },
        ["bert_model", "eval_script"],
    ),
    "nvidia run_glue.py": (
        "--task_name mrpc --do_train --train_batch_size=16 --do_eval --eval_batch_size=16 "
        "--gradient_accumulation_steps=1 --do_lower_case --data_dir glue/MRPC/ "
        "--bert_model bert-large-uncased "
        "--seed 2 --init_checkpoint bert.pt --warmup_proportion 0.1 --max_seq_length 128 "
        "--learning_rate 2.4e-5 --num_train_epochs 3 --max_steps -1.0 --vocab_file=vocab.txt "
        "--config_file=large.json --output_dir results --fp16",
        {
            "task": "mrpc",
            "batch_size": 16,
            "eval_batch_size": 16,
            "task_dir": "glue/MRPC/",
            "seed": 2,
            "warmup": 0.1,
            "steps_this_run": None,
            "num_train_epochs": 3,
        },
        ["bert_model"],
    ),
    "nvidia tensorflow run_squad.py": (
        f"{GOOGLE_FILES} {SQUAD_FILES} --do_train=True --do_predict=True "
        "--eval_script=squad/evaluate-v1.1.py --train_batch_size=8 --learning_rate=5e-6 "
        "--num_train_epochs=2.0 --max_seq_length=384 --doc_stride=128 --save_checkpoints_steps 1000 "
        "--output_dir=results --horovod --amp --use_xla --version_2_with_negative=False",
        {
            **SQUAD_KEYS,
            "batch_size": 8,  # of each worker, unlike Google's
            "global_batch_size": None,
            "precision": "fp16",
            "compile": True,
            "checkpoint_every": 1000,
            "version_2_with_negative": False,
            "task_eval_file": "squad/dev-v1.1.json",
        },
        ["eval_script", "horovod"],
    ),
    "nvidia tensorflow run_classifier.py": (
        f"--task_name=MRPC --do_train=true --do_eval=true --data_dir=glue/MRPC {GOOGLE_FILES} "
        "--max_seq_length=128 --doc_stride=64 --train_batch_size=16 --learning_rate=3e-6 "
        "--num_train_epochs=3.0 --output_dir=results --horovod --noamp --nouse_xla --warmup_proportion=0.1",
        {"task": "mrpc", "batch_size": 16, "precision": "fp32", "compile": False},
        ["horovod"],
    ),
    "google run_classifier.py": (
        f"--task_name=MRPC --do_train=true --do_eval=true --data_dir=glue/MRPC {GOOGLE_FILES} "
        "--max_seq_length=128 --train_batch_size=32 --learning_rate=2e-5 --num_train_epochs=3.0 "
        "--output_dir=/results/mrpc",
        {
            "task": "mrpc",
            "task_dir": "glue/MRPC",
            "model_config": "base/bert_config.json",
            "start_from_ckpt": "base/bert.ckpt",
            "vocab": "base/vocab.txt",
            "global_batch_size": 32,
            "max_seq_length": 128,
            "base_learning_rate": 2e-5,
            "num_train_epochs": 3,
            "do_train": True,
            **ADAMW,
        },
        [],
    ),
    "google run_classifier.py, prediction": (
        f"--task_name=MRPC --do_predict=true --data_dir=glue/MRPC {GOOGLE_FILES} --max_seq_length=128 "
        "--output_dir=/results/mrpc",
        {"task": "mrpc", "do_train": False, "do_predict": True, "task_dir": "glue/MRPC"},
        [],
    ),
    "google run_squad.py": (
        f"{GOOGLE_FILES} {SQUAD_FILES} --do_train=True --do_predict=True --train_batch_size=24 "
        "--learning_rate=3e-5 --num_train_epochs=2.0 --max_seq_length=384 --doc_stride=128 "
        "--output_dir=results --use_tpu=True --tpu_name=name --version_2_with_negative=True "
        "--null_score_diff_threshold=-1.5",
        {
            **SQUAD_KEYS,
            "task_predict_file": "squad/dev-v1.1.json",
            "task_eval_file": None,
            "do_predict": True,
            "global_batch_size": 24,
            "device": "xla",
            "version_2_with_negative": True,
            "null_score_diff_threshold": -1.5,
        },
        ["tpu_name"],
    ),
    "hugging face run_glue.py": (
        "--model_name_or_path bert-base-cased --task_name stsb --do_train --do_eval --max_seq_length 128 "
        "--per_device_train_batch_size 32 --learning_rate 2e-5 --num_train_epochs 3 --output_dir stsb",
        {
            "task": "sts-b",
            "start_from_ckpt": "bert-base-cased",
            "batch_size": 32,
            "num_train_epochs": 3,
            "do_train": True,
        },
        [],
    ),
    "hugging face run_glue.py, own files": (
        "--model_name_or_path bert --train_file train.csv --validation_file dev.csv --test_file test.csv "
        "--do_train --do_predict --max_length 64 --warmup_ratio 0.06 --lr_scheduler_type linear "
        "--optim adamw_torch --adam_epsilon 1e-8 --weight_decay 0.0 --max_steps 700 --eval_steps 100 "
        "--save_total_limit 2 --save_steps -1 --bf16 --task classification --output_dir out",
        {
            "task": "classification",
            "task_train_file": "train.csv",
            "task_eval_file": "dev.csv",
            "task_predict_file": "test.csv",
            "max_seq_length": 64,
            "warmup": 0.06,
            "schedule": "polynomial_decay",
            "optimiser": "adamw",
            "optimiser_epsilon": 1e-8,
            "steps": 700,
            "num_train_epochs": None,
            "eval_every": 100,
            "keep_checkpoints": 2,
            "checkpoint_every": 0,
            "precision": "bf16",
        },
        [],
    ),
    "hugging face run_qa.py": (
        "--model_name_or_path bert-base-uncased --dataset_name squad_v2 --do_train --do_eval "
        "--per_device_train_batch_size 12 --learning_rate 3e-5 --num_train_epochs 2 --max_seq_length 384 "
        "--doc_stride 128 --output_dir squad --version_2_with_negative",
        {"task": "squad", "version_2_with_negative": True, "batch_size": 12},
        [],
    ),
    "hugging face run_squad.py": (
        "--model_type bert --model_name_or_path bert-base-uncased --do_train --do_eval --do_lower_case "
        f"{SQUAD_FILES} --per_gpu_train_batch_size 12 --per_gpu_eval_batch_size=3 --learning_rate 3e-5 "
        "--num_train_epochs 2.0 --max_seq_length 384 --doc_stride 128 --output_dir squad --save_steps 5000",
        {
            **SQUAD_KEYS,
            "task_eval_file": "squad/dev-v1.1.json",
            "batch_size": 12,
            "eval_batch_size": 3,
            "checkpoint_every": 5000,
            "lower_case": True,
        },
        ["model_type"],
    ),
}

OPTIONS = ("mode", "use_lazy_mode")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_published_command_line_means_what_it_says(name):
    line, expected, _ = COMMANDS[name]
    config = make_task_config(split(line))
    options = {key: value for key, value in expected.items() if key in OPTIONS}
    assert {key: config.as_json()["device_options"].get(key) for key in options} == options
    assert_keys(config, **{key: value for key, value in expected.items() if key not in OPTIONS})


@pytest.mark.parametrize("name", COMMANDS)
def test_what_has_no_effect_is_named(name):
    line, _, idle = COMMANDS[name]
    config = make_task_config(split(line))
    assert config.keys_without_effect("cpu" if config.run.device == "xla" else config.run.device) == idle


def test_a_command_that_names_no_optimiser_has_googles_and_its_epochs():
    config = make_task_config(["--task=mrpc"])
    assert_keys(config, **ADAMW, num_train_epochs=3, base_learning_rate=5e-5)
    assert_keys(make_task_config(["--task=mrpc", "--steps=7"]), num_train_epochs=None, steps=7)
    given = make_task_config(["--task=mrpc", "--optimiser=adamw", "--base-learning-rate=1e-3"])
    assert_keys(given, schedule="polynomial_decay", warmup=0, weight_decay=None, base_learning_rate=1e-3)
    assert_keys(make_task_config(["--config=squad_base", "--steps=7"]), num_train_epochs=None, steps=7)
    shipped = make_task_config(["--config=squad_large"])
    assert_keys(shipped, base_learning_rate=3e-5, num_train_epochs=2, global_batch_size=32)


def test_the_help_says_the_defaults_of_fine_tuning(capsys):
    with pytest.raises(SystemExit):
        make_task_config(["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "name of the optimiser: lamb-mlperf, lamb-nvidia" in shown
    assert "sgd (default: adamw-bert)" in shown
    assert "learning rate after warm-up (default: 5e-05)" in shown
    assert "weight decay (default: 0.01)" in shown
    assert "lamb-nvidia)" not in shown


def test_a_long_warm_up_fits_the_updates_of_the_epochs():
    config = make_task_config(["--task=mnli", "--warmup_steps=5000"])
    assert (config.schedule.warmup, config.schedule.num_train_epochs) == (5000, 3)


def test_a_program_trains_only_with_do_train_where_it_is_asked_for_something_else():
    assert make_task_config(["--task_name=mrpc", "--bert_model=x", "--do_eval"]).run.do_train is False
    assert make_task_config(["--task_name=mrpc", "--model_name_or_path=x", "--do_eval"]).run.do_train is False
    assert make_task_config(["--task_name=mrpc", "--model_name_or_path=base", "--do_eval"]).run.do_train
    assert make_task_config(["--task_name=mrpc", "--model_name_or_path=x"]).run.do_train
    assert make_task_config(["--task=mrpc", "--do-predict"]).run.do_train


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--task_name=colla"], "task is 'colla', expected one of"),
        (["--dataset_name=imdb"], "task is 'imdb', expected one of"),
        (["--model_name_or_path=a", "--init_checkpoint=b"], "contradict each other"),
        (["--task_name=mrpc", "--test_set=squad"], "contradict each other"),
        (["--task=mrpc", "--evaluate_during_traning"], "is not a known key"),
    ],
)
def test_what_cannot_be_meant_is_refused(flags, said):
    with pytest.raises(SettingsError, match=said):
        make_task_config(flags)


def test_names_become_those_of_keys():
    assert task_flags(["--data_dir=x", "--train_file", "y", "--do_eval"]) == [
        "--task-dir=x", "--task-train-file", "y", "--do-eval",
    ]  # fmt: skip


def test_the_configuration_is_one_that_a_checkpoint_keeps():
    config = make_task_config(split(COMMANDS["nvidia run_squad.py"][0]))
    assert Config.of(**config.as_json()) == config
