"""Habana's demo_bert.py for TensorFlow, in its two forms."""

import pytest

from tests.support.published_commands import assert_equal, refusal, told, understood

PROGRAM = "habana-tf/demo_bert.py"
LARGE = ["--command", "pretraining", "--model_variant", "large", "--data_type", "bf16"]
BATCHES = ("world_size", "batch_size", "accumulation", "update_examples", "base_learning_rate")


@pytest.fixture(autouse=True)
def _one_host(monkeypatch):
    for name in ("MULTI_HLS_IPS", "NUM_WORKERS_PER_HLS", "INPUT_FILES_PREFIX", "FORCE_WEIGHT_SYNC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/user")


def phases(words):
    return understood(PROGRAM, words)["phases"]


def values(found, *names):
    return [[phase[name] for name in names] for phase in found]


# --- pre-training -------------------------------------------------------------------------------


def test_eight_workers_train_both_phases_with_the_program_s_values():
    first, second = phases([*LARGE, "--use_horovod", "8", "--dataset_path", "/data/tfrecord/"])
    common = {
        "device": "hpu",
        "precision": "bf16",
        "world_size": 8,
        "dist": True,
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "gelu": "tanh",
        "optimiser": "lamb-habana-tf",
        "beta1": 0.9,
        "beta2": 0.999,
        "optimiser_epsilon": 1e-6,
        "weight_decay": 0.01,
        "decay_skips": ["LayerNorm", "layer_norm", "bias"],
        "clipping": "per_micro_batch_divided",
        "max_grad_norm": 1.0,
        "lr_schedule": "habana-tf",
        "allreduce_post_accumulation": True,
        "checkpoint_every": 100,
        "log_every": 1,
        "json_summary_form": "tensorflow",
        "eval_data": None,
        "phase2": False,
        "start_moments": False,
        "resume": False,
        "unverified": True,
    }
    assert_equal(first, common)
    assert_equal(second, common)
    names = (*BATCHES, "max_seq_length", "max_predictions_per_seq", "steps", "warmup", "output_dir")
    assert values([first, second], *names) == [
        [8, 64, 128, 65536, 7.5e-4, 128, 20, 7038, 2000, "/tmp/bert/phase_1"],
        [8, 8, 512, 32768, 5e-4, 512, 80, 1564, 200, "/tmp/bert/phase_2"],
    ]
    corpus = "books_wiki_en_corpus/training"
    assert values([first, second], "train_data", "json_summary", "start_from_ckpt") == [
        [f"/data/tfrecord/seq_len_128/{corpus}", "/tmp/bert/phase_1/bert_dllog.json", None],
        [f"/data/tfrecord/seq_len_512/{corpus}", "/tmp/bert/phase_2/bert_dllog.json",
         "/tmp/bert/phase_1/model.ckpt-7038"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], [[1, 64, 1024, 65536, 6e-3], [1, 8, 4096, 32768, 4e-3]]),
        (["-v", "8"], [[8, 64, 128, 65536, 7.5e-4], [8, 8, 512, 32768, 5e-4]]),
        (["-v", "16"], [[16, 64, 64, 65536, 3.75e-4], [16, 8, 256, 32768, 2.5e-4]]),
        (["-v", "4", "-b", "32"], [[4, 32, 512, 65536, 1.5e-3], [4, 8, 1024, 32768, 1e-3]]),
        (["-v", "8", "-b", "32,4"], [[8, 32, 256, 65536, 7.5e-4], [8, 4, 1024, 32768, 5e-4]]),
        (["-v", "8", "-d", "fp32"], [[8, 32, 256, 65536, 7.5e-4], [8, 8, 512, 32768, 5e-4]]),
        (["-v", "8", "-b", "48,8"], [[8, 48, 170, 65280, 7.5e-4], [8, 8, 512, 32768, 5e-4]]),
    ],
)
def test_the_update_is_the_same_whatever_the_workers_and_so_is_the_rate_of_all(words, found):
    both = phases([*LARGE, *words])
    assert values(both, *BATCHES) == found
    effective = [phase["base_learning_rate"] * phase["world_size"] for phase in both]
    assert effective == pytest.approx([6e-3, 4e-3])


@pytest.mark.parametrize(
    ("words", "steps"),
    [
        ([], [7038, 1564]),
        (["-i", "7038,1564"], [7038, 3128]),
        (["-i", "100"], [100, 1564]),
        (["-v", "8", "-b", "48,8"], [7038, 782 * 8160 // 4096]),
        (["-v", "8", "-fpo", "1", "-i", "100,30"], [100, 30]),
    ],
)
def test_phase_2_s_updates_are_counted_as_of_phase_1_s_size(words, steps):
    assert [phase["steps"] for phase in phases([*LARGE, *words])] == steps


def test_fast_perf_only_has_small_updates_at_a_smaller_rate():
    found = phases([*LARGE, "-v", "8", "--fast_perf_only", "1"])
    rates = [7.5e-4 * 1600 / 65536, 5e-4 * 200 / 32768]
    assert values(found, "batch_size", "accumulation") == [[64, 3], [8, 3]]
    assert [phase["base_learning_rate"] for phase in found] == pytest.approx(rates)
    assert "leaves none" in refusal(PROGRAM, [*LARGE, "-v", "32", "--fast_perf_only", "1"])


def test_no_steps_accumulation_accumulates_all_the_same():
    words = [*LARGE, "-v", "8", "--no_steps_accumulation", "1", "-fpo", "1"]
    assert values(phases(words), "accumulation") == [[128], [512]]
    assert "accumulates all the same" in told(PROGRAM, words)


def test_a_warm_up_may_be_longer_than_a_trial_run():
    found = phases([*LARGE, "-i", "100,30"])
    assert values(found, "steps", "warmup") == [[100, 2000], [60, 200]]


@pytest.mark.parametrize(
    ("variant", "shape"),
    [
        ("tiny", [128, 2, 2, 512]),
        ("mini", [256, 4, 4, 1024]),
        ("small", [512, 4, 8, 2048]),
        ("medium", [512, 8, 8, 2048]),
        ("base", [768, 12, 12, 3072]),
    ],
)
def test_variants_are_google_s_models(variant, shape):
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    words = ["-c", "pretraining", "-m", variant, "-d", "fp32"]
    assert values(phases(words), *names) == [shape, shape]


def test_several_hosts_multiply_the_workers_and_are_not_started_here(monkeypatch):
    monkeypatch.setenv("MULTI_HLS_IPS", "192.0.2.1,192.0.2.2")
    found = phases([*LARGE, "-v", "8"])
    assert values(found, "world_size", "dist", "accumulation") == [[16, False, 64], [16, False, 256]]
    assert "start 8 workers on each of 2 hosts" in told(PROGRAM, [*LARGE, "-v", "8"])
    assert phases(LARGE)[0]["world_size"] == 1


def test_kubernetes_trains_one_phase_of_several_workers(monkeypatch):
    words = [*LARGE, "--use_horovod=1", "--kubernetes_run=True"]
    assert [phase["output_dir"] for phase in phases(words)] == ["/tmp/bert/phase_1"]
    (second,) = phases([*words, "--run_phase2=True"])
    assert (second["output_dir"], second["steps"]) == ("/tmp/bert/phase_2", 1564)
    assert len(phases([*LARGE, "--kubernetes_run=True"])) == 2


def test_overfit_trains_and_evaluates_on_the_same_small_file():
    words = [
        "-c",
        "pretraining",
        "-m",
        "base",
        "-d",
        "fp32",
        "-t",
        "overfit",
        "-v",
        "4",
        "--dataset_path",
        "d",
    ]
    (found,) = phases([*words, "--init_checkpoint_path", "starts"])
    wanted = {
        "train_data": "d",
        "eval_data": "d",
        "eval_examples": 800,
        "eval_batch_size": 8,
        "steps": 200,
        "warmup": 10,
        "batch_size": 32,
        "accumulation": 1,
        "update_examples": 128,
        "base_learning_rate": 6e-3 * 128 / 65536,
        "max_seq_length": 128,
        "max_predictions_per_seq": 20,
        "start_from_ckpt": "starts/base/model.ckpt-0",
        "output_dir": "/tmp/bert",
        "checkpoint_every": 1000,
    }
    assert_equal(found, wanted)


# --- fine-tuning --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "precision", "batch", "epochs", "length"),
    [
        ("mrpc", "bf16", 64, 3, 128),
        ("mrpc", "fp32", 32, 3, 128),
        ("squad", "bf16", 24, 2, 384),
        ("squad", "fp32", 10, 2, 384),
    ],
)
def test_fine_tuning_has_defaults_by_task_and_precision(task, precision, batch, epochs, length):
    words = ["-c", "finetuning", "-m", "large", "-d", precision, "-t", task, "--dataset_path", "data"]
    (found,) = phases([*words, "-v", "8"])
    wanted = {
        "task": task,
        "task_dir": "data",
        "world_size": 8,
        "batch_size": batch,
        "update_examples": 8 * batch,
        "num_train_epochs": epochs,
        "max_seq_length": length,
        "base_learning_rate": 2e-5,
        "optimiser": "adamw-bert",
        "optimiser_epsilon": 1e-6,
        "weight_decay": 0.01,
        "use_debiasing": False,
        "lr_schedule": "mlperf",
        "power": 1.0,
        "warmup": 0.1,
        "clipping": "per_update",
        "max_grad_norm": 1.0,
        "gelu": "tanh",
        "lower_case": True,
        "do_eval": True,
        "eval_every": 0,
        "eval_batch_size": 8,
        "start_from_ckpt": "wwm_uncased_L-24_H-1024_A-16/bert_model.ckpt",
        "output_dir": "/tmp/bert",
    }
    assert_equal(found, wanted)


def test_a_folder_of_weights_goes_before_the_published_ones():
    words = ["-c", "finetuning", "-m", "base", "-d", "bf16", "-t", "squad"]
    assert phases([*words, "--bert-config-dir", "a"])[0]["start_from_ckpt"] == "a/bert_model.ckpt"
    both = [*words, "--bert-config-dir", "a", "--checkpoint_folder", "b"]
    assert phases(both)[0]["start_from_ckpt"] == "b/bert_model.ckpt"


def test_mrpc_may_lie_in_a_directory_below(tmp_path):
    words = ["-c", "finetuning", "-m", "base", "-d", "bf16", "-t", "mrpc", "--dataset_path", str(tmp_path)]
    (tmp_path / "MRPC").mkdir()
    (tmp_path / "MRPC/train.tsv").touch()
    assert phases(words)[0]["task_dir"] == f"{tmp_path}/MRPC"
    (tmp_path / "train.tsv").touch()
    assert phases(words)[0]["task_dir"] == str(tmp_path)


# --- the shell script ---------------------------------------------------------------------------


def test_the_script_s_own_examples_are_understood():
    (found,) = phases(["finetuning", "-d", "bf16", "-m", "base", "-t", "mrpc", "-e", "0.5"])
    assert (found["num_train_epochs"], found["batch_size"], found["world_size"]) == (0.5, 64, 1)
    assert found["output_dir"] == "/home/user/tmp/mrpc_output/"
    found = phases(["pretraining", "-d", "fp32", "-m", "large", "-i", "100", "30"])
    assert values(found, "steps", "batch_size", "world_size") == [[100, 32, 1], [60, 8, 1]]
    assert found[1]["start_from_ckpt"] == "/home/user/tmp/pretraining/phase_1/model.ckpt-100"


@pytest.mark.parametrize(
    ("line", "workers"),
    [
        ("pretraining -v -d bf16 -m large", 8),
        ("-v pretraining -d bf16 -m large", 8),
        ("-v 4 -d bf16 -m large pretraining", 4),
        ("pretraining --dtype bf16 --model large --use_horovod 2 -b 64 8", 2),
    ],
)
def test_v_alone_is_eight_workers(line, workers):
    first = phases(line.split())[0]
    assert (first["world_size"], first["force_weight_sync"], first["batch_size"]) == (workers, True, 64)
    assert first["update_examples"] == 65536


def test_the_script_has_rates_of_its_own_for_each_task():
    rates = {"mrpc": 2e-5, "squad": 3e-5}
    for task, rate in rates.items():
        (found,) = phases(f"finetuning -d bf16 -m base -t {task}".split())
        assert found["base_learning_rate"] == rate


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "the following arguments are required: -c/--command, -d/--data_type, -m/--model_variant"),
        ("-c train -m large -d bf16", "invalid choice: 'train'"),
        ("-c pretraining -m large -d bf16 -t squad", "test_set squad is fine-tuned"),
        ("-c finetuning -m large -d bf16", "Incorrect test set passed to -t option: bookswiki"),
        ("-c pretraining -m large -d bf16 -i many", "--iters many: expected a number"),
        ("finetuning -m large -d bf16", "the following arguments are required: -t/--test-set"),
        ("pretraining -m large -d bf16 --learning_rate 1", "unrecognized arguments: --learning_rate 1"),
    ],
)
def test_wrong_command_lines_are_refused(line, message):
    assert message in refusal(PROGRAM, line.split())


def test_a_shell_command_line_without_its_sub_command_says_so():
    message = "expected a sub-command, pretraining or finetuning; found none"
    assert message in refusal(f"{PROGRAM}@0.13", ["-d", "bf16"])


def test_what_several_workers_do_otherwise_is_in_the_first_lines():
    words = ["--command", "pretraining", "--model_variant", "tiny", "--data_type", "fp32"]
    assert "a directory worker_N in output_dir" in told(PROGRAM, [*words, "--use_horovod", "8"])
    assert "the first file" in told(PROGRAM, [*words, "--use_horovod", "8"])
    assert "worker_N" not in told(PROGRAM, words)
