"""Habana's demo_bert.py: its published commands, the rules of its versions, and what it refuses."""

import json

import pytest

from tests.support.published_commands import assert_equal, commands, refusal, told, understood
from trainer.checkpoints.checkpoint import find_checkpoints

PROGRAM = "habana/demo_bert.py"
PUBLISHED = {one["id"]: one for one in commands("habana-pytorch demo_bert.py") if one["kind"] == "train"}
IN_WORDS = ("task_train_file", "task_eval_file")
NEEDED = ["--model_name_or_path", "large", "--data_type", "bf16"]
PRETRAINING = ["pretraining", *NEEDED, "--data_dir", "p1", "p2"]
SQUAD = ["finetuning", *NEEDED, "--task_name", "squad", "--data_dir", "Squad"]


def values(phases, *names):
    return [[phase[name] for name in names] for phase in phases]


def test_help_of_a_sub_command_lists_its_flags(capsys):
    from trainer.__main__ import main

    with pytest.raises(SystemExit, match="0"):
        main(["like", PROGRAM, "pretraining", "-h"])
    assert "--init_checkpoint" in capsys.readouterr().out


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_command_has_all_values_of_the_original(name):
    command = PUBLISHED[name]
    found = understood(PROGRAM, command["argv"][1:])
    expected = command["expects"]["phases"]
    assert len(found["phases"]) == len(expected)
    for phase, wanted in zip(found["phases"], expected, strict=True):
        assert_equal(phase, wanted, IN_WORDS)
        for key in IN_WORDS:
            if key in wanted:
                assert phase[key] == f"{phase['task_dir']}/{wanted[key].partition(' ')[0]}"


# --- pre-training -------------------------------------------------------------------------------


def test_one_card_and_eight_have_updates_of_different_size_at_the_same_rate():
    one = understood(PROGRAM, [*PRETRAINING, "--accumulate_gradients"])["phases"]
    eight = understood(PROGRAM, [*PRETRAINING, "--accumulate_gradients", "--world_size", "8"])["phases"]
    names = (
        "world_size",
        "dist",
        "batch_size",
        "accumulation",
        "update_examples",
        "base_learning_rate",
        "steps",
    )
    assert values(one, *names) == [
        [1, False, 64, 128, 8192, 0.006, 7038],
        [1, False, 8, 512, 4096, 0.004, 1563],
    ]
    assert values(eight, *names) == [
        [8, True, 64, 128, 65536, 0.006, 7038],
        [8, True, 8, 512, 32768, 0.004, 1563],
    ]


def test_without_accumulation_a_micro_batch_is_the_whole_update():
    phases = understood(PROGRAM, PRETRAINING)["phases"]
    assert values(phases, "batch_size", "accumulation") == [[8192, 1], [4096, 1]]


def test_a_micro_batch_is_what_the_accumulation_makes_of_the_update():
    words = [
        *PRETRAINING,
        "--accumulate_gradients",
        "--train_batch_size",
        "90",
        "64",
        "--batch_size",
        "40",
        "8",
    ]
    phases = understood(PROGRAM, words)["phases"]
    assert values(phases, "batch_size", "accumulation") == [[45, 2], [8, 8]]


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        (
            ("60", "8"),
            "Invalid gradient_accumulation_steps parameter: 136, batch size 8192 should be divisible",
        ),
        (("9000", "8"), "Invalid gradient_accumulation_steps parameter: 0, should be >= 1"),
    ],
)
def test_an_update_that_the_accumulation_does_not_divide_is_refused(batches, message):
    assert message in refusal(PROGRAM, [*PRETRAINING, "--accumulate_gradients", "--batch_size", *batches])


def test_the_directories_of_the_data_have_defaults():
    phases = understood(PROGRAM, ["pretraining", *NEEDED])["phases"]
    folder = "/software/data/pytorch/bert_pretraining/hdf5_lower_case_1_seq_len"
    rest = "masked_lm_prob_0.15_random_seed_12345_dupe_factor_5/books_wiki_en_corpus"
    assert values(phases, "train_data") == [
        [f"{folder}_128_max_pred_20_{rest}"],
        [f"{folder}_512_max_pred_80_{rest}"],
    ]


def test_outputs_and_logs_lie_below_results():
    phases = understood(PROGRAM, [*PRETRAINING, "-o", "out"])["phases"]
    assert (
        values(phases, "output_dir", "json_summary")
        == [["out/results/checkpoints", "out/results/dllogger.json"]] * 2
    )


def test_what_decays_and_the_form_of_gelu_are_the_program_s():
    phases = understood(PROGRAM, PRETRAINING)["phases"]
    assert values(phases, "decay_skips", "gelu") == [[["bias", "gamma", "beta", "LayerNorm"], "exact"]] * 2


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--mode", "graph"], {"mode": "graph"}),
        (["--mode", "eager"], {"mode": "eager"}),
        ([], {"mode": "lazy"}),
        (["--model_name_or_path", "base"], {"mode": "eager"}),
        (["--device", "cpu"], {}),
    ],
)
def test_the_mode_of_the_card_is_by_size_where_it_is_not_given(words, options):
    found = understood(PROGRAM, [*PRETRAINING, *words])["phases"][0]
    assert (found["device_options"], found["device"]) == (options, "hpu" if options else "cpu")
    assert found["hidden_size"] == 1024  # whatever the name


def test_phase_2_alone_continues_phase_1_s_last_checkpoint():
    (phase,) = understood(PROGRAM, [*PRETRAINING, "--phase", "2", "--max_steps", "100", "50"])["phases"]
    names = ("phase2", "phase1_end_step", "resume", "start_from_ckpt", "steps", "train_data")
    assert values([phase], *names) == [[True, 100, False, None, 50, "p2"]]


def test_phase_2_alone_continues_itself_where_it_has_begun(tmp_path):
    (tmp_path / "results/checkpoints/checkpoints/step-00000120").mkdir(parents=True)
    words = [*PRETRAINING, "-o", str(tmp_path), "--phase", "2", "--max_steps", "100", "50"]
    (phase,) = understood(PROGRAM, [*words, "--steps_this_run", "-1", "30"])["phases"]
    names = ("phase2", "phase1_end_step", "resume", "steps_this_run")
    assert values([phase], *names) == [[True, 100, True, 10]]


@pytest.mark.parametrize(
    ("given", "starts"),
    [
        (("a.pt", "b.pt"), [("a.pt", True, False), ("b.pt", True, True)]),
        (("a.pt", "None"), [("a.pt", True, False), (None, False, True)]),
        (("None", "b.pt"), [(None, False, False), ("b.pt", True, True)]),
    ],
)
def test_initial_checkpoints_come_with_their_moments(given, starts):
    phases = understood(PROGRAM, [*PRETRAINING, "--init_checkpoint", *given])["phases"]
    found = [(one["start_from_ckpt"], one["start_moments"], one["phase2"]) for one in phases]
    assert found == starts
    ends = [7038 if given[1] == "None" else None]
    assert [phases[1]["phase1_end_step"]] == ends


def test_steps_of_this_run_are_of_the_phase():
    words = [*PRETRAINING, "--steps_this_run", "100", "-1"]
    assert values(understood(PROGRAM, words)["phases"], "steps_this_run", "steps") == [
        [100, 7038],
        [None, 1563],
    ]
    assert values(understood(PROGRAM, words)["phases"], "phase1_end_step") == [[None], [100]]
    said = told(PROGRAM, words)
    assert "phase 1 stops at update 100 of 7038; phase 2 begins there with its update 0" in said
    assert "the program counts as -6938" in said


def test_fine_tuning_overwrites_the_run_before_and_logs_have_habanas_form():
    (tuned,) = understood(PROGRAM, SQUAD)["phases"]
    assert tuned["overwrite_output_dir"]
    first = understood(PROGRAM, PRETRAINING)["phases"][0]
    assert (first["overwrite_output_dir"], first["json_summary_form"]) == (False, "habana")


@pytest.mark.usefixtures("one_thread")
def test_a_part_of_phase_1_and_phase_2_are_trained_by_one_command(
    trainer, training_set, longer_set, tmp_path
):
    shape = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    (tmp_path / "cfg.json").write_text(json.dumps({"vocab_size": 2000, **shape}), encoding="utf-8")
    words = ["--data_type", "fp32", "--max_steps", "8", "3", "--steps_this_run", "2", "-1"]
    words += ["--batch_size", "4", "2", "--train_batch_size", "8", "4", "--accumulate_gradients"]
    words += ["--data_dir", str(training_set), str(longer_set), "--max_seq_length", "64", "96"]
    words += ["--config_file", str(tmp_path / "cfg.json"), "--output_dir", str(tmp_path)]
    ours = ["--", "--device=cpu", "--max-predictions-per-seq", "10", "15"]
    done = trainer("like", PROGRAM, "pretraining", "--model_name_or_path", "base", *words, *ours)
    assert done.status == 0, done.err
    assert list(find_checkpoints(str(tmp_path / "results" / "checkpoints"))) == [2, 5]


# --- versions -----------------------------------------------------------------------------------


def test_from_1_1_0_on_the_update_is_that_of_all_cards():
    for cards, size in (("8", 65536), ("1", 65536), ("16", 65536)):
        words = [*PRETRAINING, "--accumulate_gradients", "--world_size", cards]
        first, second = understood(f"{PROGRAM}@1.1.0", words)["phases"]
        assert (first["update_examples"], second["update_examples"]) == (size, size // 2)
        assert (first["seed"], second["seed"]) == (12439, 12439)
    assert (
        understood(f"{PROGRAM}@1.0.0", [*PRETRAINING, "--world_size", "8"])["phases"][0]["update_examples"]
        == 65536
    )


def test_cards_that_do_not_divide_the_update_leave_the_rest_out():
    words = [*PRETRAINING, "--world_size", "3", "--train_batch_size", "100", "100"]
    assert values(understood(f"{PROGRAM}@1.1.0", words)["phases"], "batch_size") == [[33], [33]]


@pytest.mark.parametrize("cards", ["8", "32"])
def test_packs_divide_the_accumulation(cards):
    words = [*PRETRAINING, "--world_size", cards, "--accumulate_gradients", "--enable_packed_data_mode"]
    phases = understood(f"{PROGRAM}@1.4.1", words)["phases"]
    counts = {"8": [107, 256], "32": [27, 64]}[cards]  # 128 / 1.2, 512 / 2, 32 / 1.2, 128 / 2
    assert values(phases, "accumulation", "packed_accumulation") == [[count, "rows"] for count in counts]


@pytest.mark.parametrize(
    ("version", "mode", "found"),
    [
        ("1.0.0", "graph", "eager"),
        ("1.1.0", "graph", "eager"),
        ("1.4.1", "graph", "lazy"),
        ("1.4.1", "eager", "eager"),
    ],
)
def test_later_versions_have_no_graph_mode(version, mode, found):
    phases = understood(f"{PROGRAM}@{version}", [*PRETRAINING, "--mode", mode])["phases"]
    assert phases[0]["device_options"] == {"mode": found}


def test_resuming_is_of_both_phases():
    phases = understood(f"{PROGRAM}@1.1.0", [*PRETRAINING, "--resume_from_checkpoint"])["phases"]
    assert values(phases, "resume", "phase2") == [[True, False], [False, True]]


def test_cards_of_several_hosts_are_not_started_on_this_one():
    words = [*PRETRAINING, "--world_size", "32", "--process_per_node", "8"]
    found = understood(f"{PROGRAM}@1.1.0", words)
    assert (found["world_size"], found["phases"][0]["dist"]) == (32, False)
    assert "start 8 workers on each host" in told(f"{PROGRAM}@1.1.0", words)


def test_a_flag_of_another_version_says_so():
    words = [*PRETRAINING, "--process_per_node", "8"]
    assert "--process_per_node is a flag of version 1.1.0, 1.4.1: append @1.1.0" in refusal(PROGRAM, words)
    assert (
        "--tqdm_smoothing is a flag of the default version: leave out the @ and what follows it"
    ) in refusal(f"{PROGRAM}@1.1.0", [*PRETRAINING, "--tqdm_smoothing", "1"])
    assert "known besides the default are @1.0.0, @1.1.0, @1.4.1" in refusal(f"{PROGRAM}@2.0", PRETRAINING)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected a sub-command, pretraining or finetuning; found none"),
        (["pretrain"], "expected a sub-command, pretraining or finetuning; found 'pretrain'"),
        (["pretraining"], "the following arguments are required: --model_name_or_path, --data_type"),
        (["pretraining", *NEEDED, "--batch_size", "64"], "expected 2 arguments"),
        (["pretraining", *NEEDED, "--phase", "3"], "invalid choice: 3"),
        (["pretraining", "--model_name_or_path", "huge", "--data_type", "bf16"], "invalid choice: 'huge'"),
        ([*SQUAD, "--num_train_epochs", "2.5"], "invalid int value: '2.5'"),
        ([*PRETRAINING, "--bath_size", "1", "1"], "did you mean --batch_size?"),
    ],
)
def test_wrong_command_lines_are_refused_in_the_parser_s_words(words, message):
    assert message in refusal(PROGRAM, words)


def test_flags_may_be_abbreviated():
    words = [*PRETRAINING, "--max_st", "9", "8", "--warmup", "0", "0"]
    assert values(understood(PROGRAM, words)["phases"], "steps") == [[9], [8]]


def test_another_model_is_refused():
    words = ["finetuning", "--model_name_or_path", "roberta-base", "--data_type", "fp32"]
    assert "roberta-base is no BERT" in refusal(f"{PROGRAM}@1.1.0", words)


# --- fine-tuning --------------------------------------------------------------------------------


def test_fine_tuning_has_the_program_s_defaults():
    found = understood(PROGRAM, ["finetuning", *NEEDED, "--data_dir", "MRPC"])
    wanted = {
        "task": "mrpc",
        "task_train_file": "MRPC/train.tsv",
        "task_eval_file": "MRPC/dev.tsv",
        "start_from_ckpt": "bert-large-uncased-whole-word-masking",
        "batch_size": 8,
        "eval_batch_size": 8,
        "base_learning_rate": 2e-5,
        "max_seq_length": 128,
        "num_train_epochs": 1,
        "optimiser_epsilon": 1e-8,
        "weight_decay": 0.0,
        "warmup": 0,
        "do_eval": False,
        "checkpoint_every": 500,
        "log_every": 1,
        "output_dir": "/tmp/mrpc",
        "seed": 42,
        "gelu": "exact",
        "use_debiasing": True,
    }
    assert_equal(found["phases"][0], wanted)


def test_dist_means_eight_cards_in_fine_tuning_only():
    assert understood(PROGRAM, [*SQUAD, "--dist"])["world_size"] == 8
    assert understood(PROGRAM, [*SQUAD, "--dist", "--world_size", "4"])["world_size"] == 4
    assert understood(PROGRAM, [*PRETRAINING, "--dist"])["world_size"] == 1


def test_max_steps_replaces_the_epochs():
    (found,) = understood(PROGRAM, [*SQUAD, "--max_steps", "10", "-st", "5"])["phases"]
    assert values([found], "steps", "num_train_epochs", "checkpoint_every") == [[10, None, 5]]


def test_mrpc_in_lazy_mode_is_told_to_fail_in_the_original():
    mrpc = ["finetuning", *NEEDED, "--data_dir", "MRPC"]
    assert "MRPC in lazy mode: the original stops here" in told(PROGRAM, mrpc)
    assert "MRPC in lazy mode" not in told(PROGRAM, [*mrpc, "--mode", "graph"])


def test_later_versions_name_a_data_set_that_is_given_here_as_files(tmp_path):
    words = ["finetuning", *NEEDED, "--task_name", "squad"]
    assert "give --dataset_name squad" in refusal(f"{PROGRAM}@1.1.0", words)
    named = [*words, "--dataset_name", "squad"]
    assert "-- --data-dir DIR" in told(f"{PROGRAM}@1.1.0", named)
    found = understood(f"{PROGRAM}@1.1.0", [*named, "--", "--data-dir", "Squad"])["phases"][0]
    assert (found["task_dir"], found["seed"], found["max_seq_length"]) == ("Squad", 42, 128)
