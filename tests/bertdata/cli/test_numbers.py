"""Numbers of flags that no file, kernel or library can hold."""

import pytest

LARGEST = 9007199254740991  # 2^53 - 1, exact in every JSON


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("the water runs down the hill\n" * 9)
    return path


@pytest.mark.parametrize("kind", ["wordpiece", "bpe", "unigram"])
@pytest.mark.parametrize("size", [2097153, 4294967296, LARGEST])
def test_a_vocabulary_larger_than_any_tokeniser_is_refused(bertdata, text, tmp_path, kind, size):
    output = tmp_path / "out.json"
    found = bertdata("train-vocab", text, f"--output={output}", f"--kind={kind}", f"--size={size}")
    found.assert_one_error(2, f"--size is {size}, expected at most 2097152")
    assert not output.exists()


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        (
            "--index=9223372036854775807",
            f"argument --index: '9223372036854775807' is out of range, expected at most {LARGEST}",
        ),
        ("--index=-1", "argument --index: '-1' is out of range, expected 0 or more"),
        (f"--num={LARGEST + 1}", "is out of range, expected at most"),
        (f"--num={'9' * 5000}", "is not an integer of at most 300 digits"),
        ("--num=0", "argument --num: '0' is out of range, expected 1 or more"),
        ("--num=x", "argument --num: 'x' is not an integer"),
    ],
)
def test_a_number_out_of_range_is_one_short_line(bertdata, training_set, flag, told):
    [shard, *_] = sorted(training_set.glob("*.tfrecord"))
    found = bertdata("show", shard, flag)
    found.assert_one_error(2, told)
    assert len(found.err) < 400


def test_the_largest_number_is_taken(bertdata, training_set):
    [shard, *_] = sorted(training_set.glob("*.tfrecord"))
    bertdata("show", shard, f"--index={LARGEST}").assert_one_error(2, f"--index {LARGEST}: ", "the last is")


@pytest.mark.parametrize("command", ["segment", "create", "pack", "verify-md5"])
def test_more_processes_than_would_ever_start_are_refused(bertdata, text, tmp_path, command):
    output = {"verify-md5": []}.get(command, [f"--output={tmp_path / 'out'}"])
    more = {"create": ["--vocab=bert-base-uncased"]}.get(command, [])
    bertdata(command, text, *output, *more, "--workers=2147483647").assert_one_error(
        2, "expected at most 4096"
    )


@pytest.mark.parametrize("objective", ["bert", "mlm", "span", "sop", "electra"])
@pytest.mark.parametrize("rate", ["1e308", "nan", "inf", "-1"])
def test_a_rate_of_masks_beyond_all_is_one_line(bertdata, text, tmp_path, objective, rate):
    words = ["create", text, f"--output={tmp_path / 'out'}", "--vocab=bert-base-uncased"]
    found = bertdata(*words, f"--objective={objective}", f"--masked-lm-prob={rate}")
    found.assert_one_error(2, "masked-lm-prob")


def test_a_seed_has_as_many_digits_as_a_manifest_is_read_with(bertdata, text, tmp_path):
    words = ["create", text, f"--output={tmp_path / 'out'}", "--vocab=bert-base-uncased"]
    bertdata(*words, f"--random-seed={'9' * 301}").assert_one_error(
        2, "is not an integer of at most 300 digits"
    )
