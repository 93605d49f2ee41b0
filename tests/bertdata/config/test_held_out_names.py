"""Names of the files of text: which are held out of training, and which are lists."""

import pytest

from bertdata.config.held_out_names import (
    find_held_out,
    is_companion_list,
    make_mlperf_part_name,
    make_record_eval_name,
    make_record_part_name,
    make_test_pattern,
)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["wiki_training_0.txt", "wiki_test_0.txt"], ["wiki_test_0.txt"]),
        (["train/wiki_training_0.txt", "test/wiki_test_0.txt"], ["test/wiki_test_0.txt"]),
        (["wiki_training_0.txt.bin-01.hdf5", "wiki_test_3.txt.bin-00.hdf5"], ["wiki_test_3.txt.bin-00.hdf5"]),
        (["wiki_test_0.txt", "books_training_0.txt"], []),  # of two corpora
        (["wiki_test_0.txt", "wiki_test_1.txt"], []),
        (["part-00000-of-00500", "eval.txt"], ["eval.txt"]),
        (["a/part-00000-of-00500.tfrecord", "eval.txt.tfrecord"], ["eval.txt.tfrecord"]),
        (["part-00000.txt", "eval-00000.txt", "eval-00001.txt"], ["eval-00000.txt", "eval-00001.txt"]),
        (["part-00000.txt.tfrecord", "eval-00000.txt.tfrecord"], ["eval-00000.txt.tfrecord"]),
        (["eval-00000.txt", "eval-00001.txt"], []),
        (["eval.txt"], []),
        (["eval.txt", "wiki.txt"], []),
        (["latest_test.txt", "training.txt", "protest_0"], []),
    ],
)
def test_held_out_files_are_told_by_name_where_those_to_train_on_are_there(names, expected):
    assert find_held_out(names) == expected


@pytest.mark.parametrize("ending", ["", ".tfrecord", ".bin-01.hdf5"])
def test_names_that_the_text_stages_write_are_known_again(ending):
    parts, evaluation = [make_record_part_name(0) + ending], [make_record_eval_name(3) + ending]
    assert find_held_out(parts + evaluation) == evaluation
    assert find_held_out([make_mlperf_part_name(7) + ending, "eval.txt" + ending]) == ["eval.txt" + ending]


def test_lists_that_lie_among_the_text_are_told():
    assert [
        name for name in ("d/eval.md5", "removed.jsonl", "eval.txt", "a.jsonl") if is_companion_list(name)
    ] == [
        "d/eval.md5",
        "removed.jsonl",
    ]


def test_the_pattern_of_test_shards_takes_all_of_a_corpus():
    assert (
        make_test_pattern(["wiki_training_0.txt", "wiki_test_0.txt", "wiki_test_1.txt"]) == "wiki_test_*.txt"
    )
    assert make_test_pattern(["eval.txt"]) is None
