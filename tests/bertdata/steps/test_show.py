"""bertdata.show: what the command prints, as a list."""

import pytest

import bertdata
from bertdata.errors import MissingInputError, SettingsError, UsageError
from tests.support.commands import Program
from tests.support.paths import ROOT

VOCABULARY = ROOT / "golden" / "vocab.txt"
SIZES = {"max_seq_length": 64, "max_predictions_per_seq": 10, "dupe_factor": 1, "workers": 1}


@pytest.fixture(scope="module")
def shard(corpus, tmp_path_factory):
    """A shard of BERT's examples."""
    place = tmp_path_factory.mktemp("shown") / "set"
    bertdata.create(corpus[:1], place, vocab=VOCABULARY, **SIZES)
    return next(place.glob("*.tfrecord"))


def test_the_items_are_what_the_command_prints(shard, capsys):
    shown = bertdata.show(shard, index=3, num=2)
    examples = bertdata.open_dataset(shard)[3:5]
    assert [one.title for one in shown] == ["example 3", "example 4"]
    assert [one.example for one in shown] == examples
    assert "".join(f"{one}\n" for one in shown) == Program(capsys)("show", shard, "--index=3", "--num=2").out


def test_a_packed_row_gives_an_item_for_each_sequence(shard, tmp_path):
    bertdata.pack(shard.parent, tmp_path / "packed", layout="flat", workers=1)
    shown = bertdata.show(bertdata.open_dataset(tmp_path / "packed").shards[0].path)
    assert [one.title for one in shown] == [
        f"row 0, sequence {place} of {len(shown)}" for place in range(1, len(shown) + 1)
    ]


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"index": -1}, SettingsError, "index is -1, expected an integer of 0 or more"),
        ({"num": 0}, SettingsError, "num is 0, expected 1 or more"),
        ({"ids_type": "int7"}, SettingsError, "ids_type is 'int7', expected one of "),
        ({"index": 10**6}, UsageError, "examples, the last is "),
    ],
)
def test_wrong_arguments_are_told(shard, given, error, said):
    with pytest.raises(error) as caught:
        bertdata.show(shard, **given)
    assert said in str(caught.value)


def test_an_empty_name_is_shown_in_the_error(capsys):
    Program(capsys)("show", "").assert_one_error(2, "'' (an empty name): no such file or directory")
    with pytest.raises(MissingInputError, match="an empty name"):
        bertdata.show("")
