"""Errors and warnings of Python functions name arguments; those of the command line name flags."""

import inspect

import pytest

import bertdata
from bertdata.errors import BertDataError, DatasetError, SettingsError
from bertdata.steps.argument_names import Argument, list_signature_arguments, name_arguments, rewrite_flags
from bertdata.steps.create import create
from bertdata.steps.segment import segment

CREATE, SEGMENT = list_signature_arguments(create), list_signature_arguments(segment)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "--shuffle global needs --num-shards N, the number of shards",
            'shuffle="global" needs num_shards=N, the number of shards',
        ),
        ("give --phase to change one of them", "give phase= to change one of them"),
        ("give both --phase", "give both phase="),
        ("--role mask=<mask>: unknown", 'roles=["mask=<mask>"]: unknown'),
        ("as --role 'mask=<mask>', say", 'as roles=["mask=<mask>"], say'),
        ("--vocab v.txt: is a directory", 'vocab="v.txt": is a directory'),
        ("--vocab: is missing", "vocab: is missing"),
        ("--phase is 'x', expected 1", "phase is 'x', expected 1"),
        ("--lower-case or --no-lower-case", "lower_case=True or lower_case=False"),
        ("give --no-masks.", "give masks=False."),
        # what is typed in a shell stays, and so do flags that are no arguments
        (
            "make it with bertdata create --no-masks; --no-masks",
            "make it with bertdata create --no-masks; masks=False",
        ),
        ("made by create --objective mlm --no-masks", "made by create --objective mlm --no-masks"),
        ("pip install --editable '.[wiki]'", "pip install --editable '.[wiki]'"),
        ("--exclude-ngram 5 (see --help)", "--exclude-ngram 5 (see --help)"),
    ],
)
def test_flags_become_arguments(message, expected):
    known = {name: one for name, one in CREATE.items() if "exclude" not in name}
    assert rewrite_flags(message, known) == expected


def test_values_of_several_forms_are_kept():
    assert rewrite_flags("--eval-share 1% of --part-size MIB", SEGMENT) == 'eval_share="1%" of part_size=MIB'
    assert rewrite_flags("--x=-1.5e3, --x=a", {"--x": Argument(name="x")}) == 'x=-1.5e3, x="a"'


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"vocab": "v", "shuffle": "global"}, 'shuffle="global" needs num_shards=N'),
        ({"vocab": "v", "num_shards": 2}, 'num_shards goes with shuffle="global"'),
        ({"vocab": "v", "recipe": "nvidia", "max_seq_length": 64}, "give phase= to"),
        ({"vocab": "v", "recipe": "google", "objective": "mlm"}, 'recipe="google" goes'),
    ],
)
def test_an_error_of_create_names_the_argument(settings, expected):
    with pytest.raises(BertDataError) as raised:
        bertdata.create("p", "o", **settings)
    assert expected in str(raised.value)
    assert "--" not in str(raised.value)


@pytest.mark.parametrize(
    ("output", "settings", "expected"),
    [
        ("o.json", {"keep_accents": True}, "keep_accents=True: bpe keeps accents"),
        ("o.txt", {}, 'kind="bpe" makes a tokenizer.json'),
    ],
)
def test_an_error_of_train_vocab_names_the_argument(output, settings, expected):
    with pytest.raises(BertDataError) as raised:
        bertdata.train_vocab("t", output, size=9, kind="bpe", **settings)
    assert str(raised.value).startswith(expected)


def test_the_command_line_still_names_flags(bertdata):
    outcome = bertdata("create", "p", "--output", "o", "--vocab", "v", "--shuffle", "global")
    assert "--shuffle global needs --num-shards N" in outcome.err
    assert outcome.status == 2


def test_a_function_keeps_its_signature_its_class_of_error_and_its_other_arguments():
    assert inspect.signature(bertdata.create) == inspect.signature(create)
    assert bertdata.create.__doc__ == create.__doc__
    error = DatasetError("give --size 3", "second")

    def fail(size: int) -> None:
        raise error

    with pytest.raises(DatasetError) as raised:
        name_arguments(fail)(3)
    assert raised.value is error
    assert raised.value.args == ("give size=3", "second")
    assert not isinstance(raised.value, SettingsError)
