"""Graphcore's run_squad.py: its published commands and files, and what it refuses."""

import pytest

from bertdata.errors import UsageError
from tests.support.published_commands import assert_equal, understood
from trainer.programs.choice import find_program
from trainer.programs.graphcore.run_squad import translate
from trainer.programs.translated_command import TranslatedCommand

NAME = "graphcore/run_squad.py"
PROGRAM = find_program(NAME)
LARGE = ("--config", "configs/squad_large.json")
ALL = ("--do-training", "--do-predict", "--do-evaluation", "--init-checkpoint", "phase2/model.ckpt")


def meaning(*words: str) -> TranslatedCommand:
    return translate(PROGRAM.read(words))


def test_the_readmes_command_fine_tunes_predicts_and_scores():
    (phase,) = understood(NAME, [*LARGE, *ALL])["phases"]
    wanted = {
        "task": "squad",
        "device": "ipu",
        "do_train": True,
        "do_predict": True,
        "do_eval": True,
        "start_from_ckpt": "phase2/model.ckpt",
        "task_train_file": "data/squad/train-v1.1.json",
        "task_eval_file": "data/squad/dev-v1.1.json",
        "task_predict_file": "data/squad/dev-v1.1.json",
        "vocab": "data/ckpts/uncased_L-24_H-1024_A-16/vocab.txt",
        "lower_case": True,
        "output_dir": "checkpoint/squad",
        "batch_size": 1,
        "accumulation": 260,
        "replicas": 4,
        "update_examples": 1040,
        "num_train_epochs": 2.0,
        "warmup": 0.4,
        "base_learning_rate": 9e-5,
        "lr_schedule": "polynomial_decay",
        "optimiser": "adamw-bert",
        "optimiser_epsilon": 1e-6,
        "weight_decay": 0.01,
        "use_debiasing": False,
        "clipping": "per_update",
        "max_grad_norm": 4.0,
        "precision": "fp16",
        "loss_scaling": 1024,
        "hidden_size": 1024,
        "gelu": "tanh",
        "use_qkv_bias": False,
        "use_attention_projection_bias": False,
        "max_seq_length": 384,
        "doc_stride": 128,
        "n_best_size": 20,
        "seed": 2243,
    }
    assert_equal(phase, wanted)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (
            (*LARGE, "--do-training"),
            {"do_predict": False, "do_eval": False, "output_dir": "checkpoint/squad"},
        ),
        ((*LARGE, "--do-predict"), {"do_train": False, "do_eval": False, "output_dir": "tmp/squad/"}),
        ((*LARGE, *ALL, "--num-train-steps=300"), {"steps": 300, "warmup": 0.4}),
        (
            (*LARGE, *ALL, "--num-train-steps=30", "--device-iterations=2"),
            {"steps": 60, "checkpoint_every": 200},
        ),
        ((*LARGE, *ALL, "--optimizer=momentum"), {"optimiser": "momentum", "momentum": 0.984375}),
        ((*LARGE, *ALL, "--reduction-type=sum"), {"accumulation": 1040, "replicas": 1}),
        ((*LARGE, *ALL, "--precision=32"), {"precision": "fp32"}),
        (("--config", "configs/squad_base.json", "--do-training"), {"steps": 2100, "warmup": 276}),
        (("--config", "configs/squad_base.json"), {"do_train": True, "optimiser_epsilon": 1e-4}),
        (
            ("--config", "configs/squad_large_V2.json", "--do-training"),
            {
                "version_2_with_negative": True,
                "optimiser": "adamw-bert",
                "use_attention_projection_bias": True,
            },
        ),
    ],
)
def test_a_flag_and_a_file_have_the_programs_meaning(words, wanted):
    (keys,) = meaning(*words).phases
    assert {name: keys[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "the following arguments are required: --config"),
        (LARGE, "nothing to do: give --do-training, --do-predict or both"),
        ((*LARGE, *ALL, "--groupbert"), "no GroupBERT"),
        ((*LARGE, *ALL, "--lr-schedule=polynomial"), "polynomial_decay with lr_power 1 is offered"),
        (
            (*LARGE, *ALL, "--use-cls-layer=maybe"),
            "argument --use-cls-layer: Truthy value expected: got maybe",
        ),
        ((*LARGE, *ALL, "--batch-size=2"), "unrecognized arguments: --batch-size=2"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(words, said):
    with pytest.raises(UsageError) as caught:
        meaning(*words)
    assert said in str(caught.value)
