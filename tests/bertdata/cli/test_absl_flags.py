"""Command lines of the drop-in: what is made of them, held against a table and against absl-py itself."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.cli.common.absl_flags import HELP_FLAGS, OWN_FLAGS, parse_absl_boolean, parse_absl_integer
from bertdata.cli.create_pretraining_data import make_parser, read_flags
from bertdata.errors import UsageError

FILES = ("--input_file=a", "--output_file=b", "--vocab_file=c")

FLAG_FILES = {
    "simple": "--dupe_factor=3\n\n# --max_seq_length=9\n// --max_seq_length=9\n  --random_seed=7  \n",
    "outer": "--dupe_factor=3\n--flagfile=inner\n--max_seq_length=64",
    "inner": "-dupe_factor=4\r\n--nodo_lower_case\n",
    "two lines": "--dupe_factor\n3\n",
    "one line": "--dupe_factor 3\n",
    "indented": " # --dupe_factor=3\n --flagfile=inner\n",
    "circle": "--dupe_factor=3\n--flagfile=circle\n--max_seq_length=64\n",
    "end": "--dupe_factor=3\n--\n",
    "empty": "\n",
    "no name": "--dupe_factor=3\n--flagfile",
}

TABLE: list[tuple[list[str], dict[str, Any], list[str]]] = [
    # one dash or two, = or a blank; the last one counts
    ([], {}, []),
    (["-max_seq_length=64"], {"max_seq_length": 64}, []),
    (["--max_seq_length", "64", "-dupe_factor", "2"], {"max_seq_length": 64, "dupe_factor": 2}, []),
    (["--random_seed", "-5"], {"random_seed": -5}, []),
    (["--input_file", "--dupe_factor=2"], {"input_file": "--dupe_factor=2"}, []),
    (["--input_file="], {"input_file": ""}, []),
    (["--input_file=x=y"], {"input_file": "x=y"}, []),
    (["--dupe_factor=2", "--dupe_factor=3"], {"dupe_factor": 3}, []),
    # numbers
    (["--random_seed=0x10", "--dupe_factor=0o17"], {"random_seed": 16, "dupe_factor": 15}, []),
    (["--masked_lm_prob=1e-1", "--short_seq_prob", ".5"], {"masked_lm_prob": 0.1, "short_seq_prob": 0.5}, []),
    # booleans
    (["--do_lower_case"], {"do_lower_case": True}, []),
    (["--nodo_lower_case"], {"do_lower_case": False}, []),
    (["-nodo_lower_case", "--do_whole_word_mask"], {"do_lower_case": False, "do_whole_word_mask": True}, []),
    *((["--do_lower_case=" + no], {"do_lower_case": False}, []) for no in ("False", "false", "f", "F", "0")),
    *((["--do_lower_case=" + yes], {"do_lower_case": True}, []) for yes in ("True", "true", "t", "T", "1")),
    (
        ["--do_lower_case", "False"],
        {"do_lower_case": True},
        ["--do_lower_case False: a boolean flag takes its value only after =, so do_lower_case is true"],
    ),
    (
        ["--nodo_lower_case", "True", "--dupe_factor=2"],
        {"do_lower_case": False, "dupe_factor": 2},
        ["so do_lower_case is false and 'True' is ignored"],
    ),
    # flags that are not the script's, and words
    (["--dupe_facto=3"], {}, ["--dupe_facto=3: no such flag; it is ignored", "did you mean --dupe_factor?"]),
    (["--max_seq=3", "--foo", "bar"], {}, ["--max_seq=3: no such", "--foo: no such", "'bar' is no flag"]),
    (["--foo", "--dupe_factor=2"], {"dupe_factor": 2}, ["--foo: no such flag"]),
    (["--nomax_seq_length"], {}, ["--nomax_seq_length: no such flag"]),
    (["--no", "---dupe_factor=3"], {}, ["--no: no such flag", "---dupe_factor=3: no such flag"]),
    (["--undefok=foo,bar", "--foo=1", "--nobar"], {}, []),
    (["--foo=1", "--undefok", "foo"], {}, []),
    (["word", "--dupe_factor=2", "-"], {"dupe_factor": 2}, ["'word' is no flag", "'-' is no flag"]),
    (["--dupe_factor=2", "--", "--dupe_factor=3"], {"dupe_factor": 2}, ["--dupe_factor=3: comes after --"]),
    (["--verbosity=1", "-v", "2", "--nologtostderr"], {}, ["--verbosity=1: has no", "-v: has", "--nolog"]),
    # flag files
    (["--flagfile=simple"], {"dupe_factor": 3, "random_seed": 7}, []),
    (["--flagfile", "simple", "--dupe_factor=2"], {"dupe_factor": 2, "random_seed": 7}, []),
    (["--dupe_factor=2", "-flagfile=simple"], {"dupe_factor": 3, "random_seed": 7}, []),
    (["-flagfile", "outer"], {"dupe_factor": 4, "do_lower_case": False, "max_seq_length": 64}, []),
    (["--flagfile= simple "], {"dupe_factor": 3, "random_seed": 7}, []),
    (["--flagfile=two lines"], {"dupe_factor": 3}, []),
    (["--flagfile=one line"], {}, ["--dupe_factor 3: no such flag"]),
    (["--flagfile=indented"], {}, ["'# --dupe_factor=3' is no flag", "--flagfile=inner: no such flag"]),
    (["--flagfile=circle"], {"dupe_factor": 3, "max_seq_length": 64}, ["the file names itself"]),
    (["--flagfile=simple", "--flagfile=simple"], {"dupe_factor": 3, "random_seed": 7}, []),
    (["--flagfile=end", "--dupe_factor=4"], {"dupe_factor": 3}, ["--dupe_factor=4: comes after --"]),
    (["--flagfile=", "--flagfile=empty"], {}, []),
    (["--", "--flagfile=simple"], {}, ["--flagfile=simple: comes after --"]),
]  # fmt: skip

ERRORS = [
    (["--nodo_lower_case=true"], "--nodo_lower_case=true: --nodo_lower_case takes no value"),
    (["--dupe_factor"], "--dupe_factor: has no value"),
    (["--undefok"], "--undefok: has no value"),
    (["--flagfile"], "--flagfile: has no value"),
    (["--flagfile=absent"], "absent: no such file"),
    (["--flagfile=no name"], "no name: --flagfile names no file"),
    (["--do_lower_case=yes"], "'yes' is neither true nor false"),
    (["--do_lower_case="], "'' is neither true nor false"),
    (["--dupe_factor=2.0"], "'2.0' is not an integer"),
    (["--dupe_factor=two", "--dupe_factor=2"], "'two' is not an integer"),
    (["--dupe_factor", "--"], "argument --dupe_factor: '--' is no value"),
    (["--masked_lm_prob=half"], "invalid float value: 'half'"),
]


@pytest.fixture(autouse=True)
def _flag_files(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flag files of the table, in the working directory."""
    place = tmp_path_factory.getbasetemp() / "flag files"
    place.mkdir(exist_ok=True)
    for name, text in FLAG_FILES.items():
        (place / name).write_bytes(text.encode())
    monkeypatch.chdir(place)


def title(words: Any) -> str | None:
    return " ".join(words) or "nothing" if isinstance(words, list) else None


@pytest.mark.parametrize(("words", "changes", "warned"), TABLE, ids=title)
def test_the_drop_in_reads_the_command_line_as_the_table_says(words, changes, warned):
    values, warnings = read_flags([*FILES, *words])
    defaults = vars(make_parser().parse_args(FILES))
    assert vars(values) == {**defaults, **changes}
    for fragment in warned:
        assert any(fragment in warning for warning in warnings), warnings
    assert bool(warnings) == bool(warned)


@pytest.mark.parametrize(("words", "message"), ERRORS, ids=title)
def test_a_command_line_that_absl_refuses_is_one_error(words, message, bertdata):
    bertdata("create-pretraining-data", *FILES, *words).assert_one_error(2, message)


def test_only_check_args_makes_nothing(bertdata, tmp_path):
    output = tmp_path / "out"
    for flag in ("--only_check_args", "-only_check_flags=true"):
        outcome = bertdata("create-pretraining-data", *FILES, f"--output_file={output}", flag)
        assert (outcome.status, outcome.out, outcome.err) == (0, "", "")
        assert not output.exists()


@pytest.mark.parametrize("flag", ["--help", "-helpfull", "--helpshort"])
def test_each_help_flag_of_absl_shows_the_help(flag, bertdata):
    outcome = bertdata("create-pretraining-data", flag)
    assert outcome.status == 0
    assert outcome.out.startswith("Example:\n")


# --- against absl-py ----------------------------------------------------------------------------


def absl_values(words: list[str]) -> dict[str, Any]:
    """The flags as absl reads them; the scripts' ones are defined as the drop-in's parser has them."""
    flags = pytest.importorskip("absl.flags", reason="absl-py is not installed: it comes with TensorFlow")
    values = flags.FlagValues()
    define = {
        parse_absl_boolean: flags.DEFINE_boolean,
        parse_absl_integer: flags.DEFINE_integer,
        float: flags.DEFINE_float,
    }
    names = [action.dest for action in make_parser()._actions if action.dest not in ("help", "overwrite")]
    for action in make_parser()._actions:
        if action.dest in names:
            kind = define.get(action.type, flags.DEFINE_string)
            kind(action.dest, action.default, "", flag_values=values)
    for name, is_boolean in OWN_FLAGS.items():
        kind = flags.DEFINE_boolean if is_boolean else flags.DEFINE_string
        kind(name, None, "", flag_values=values)
    values(["script", *words], known_only=True)
    return {name: values[name].value for name in names}


@pytest.mark.parametrize(("words", "changes", "warned"), TABLE, ids=title)
def test_absl_reads_the_command_line_as_the_table_says(words, changes, warned):
    assert absl_values([*FILES, *words]) == {**absl_values(list(FILES)), **changes}


@pytest.mark.parametrize(("words", "message"), ERRORS, ids=title)
def test_absl_refuses_what_the_table_says(words, message):
    flags = pytest.importorskip("absl.flags")
    with pytest.raises((flags.Error, ValueError)):
        absl_values([*FILES, *words])


def test_every_flag_that_absl_itself_defines_is_known():
    app = pytest.importorskip("absl.app")
    logging = pytest.importorskip("absl.logging")
    app.define_help_flags()
    defined = {}
    for module in (app, logging):
        for flag in app.flags.FLAGS.get_flags_for_module(module):
            defined.update({name: flag.boolean for name in (flag.name, flag.short_name) if name})
    script = {
        option.lstrip("-"): action.type is parse_absl_boolean
        for action in make_parser()._actions
        for option in action.option_strings
    }
    known = {**script, **dict.fromkeys(HELP_FLAGS, True), **OWN_FLAGS}
    assert {name: known.get(name) for name in defined} == defined
    assert set(OWN_FLAGS) <= set(defined) | {"pdb", "logger_levels"}


WORDS = st.sampled_from(
    [
        *(
            "--dupe_factor=2",
            "-dupe_factor=3",
            "--dupe_factor",
            "--max_seq_length",
            "-random_seed",
            "4",
            "0x1f",
        ),
        *("--do_lower_case", "--nodo_lower_case", "-do_whole_word_mask", "--do_lower_case=false", "False"),
        *("--nodo_lower_case=1", "--do_lower_case=maybe", "--foo", "--foo=1", "--nofoo", "--undefok=foo"),
        *("--", "-", "---", "--=", "-=1", "--no", "--undefok", "-v", "--nologtostderr", "word", "--flagfile"),
        *(f"--flagfile={name}" for name in FLAG_FILES),
        *("simple", "outer"),
    ]
)


@given(st.lists(WORDS, max_size=6))
def test_generated_command_lines_are_read_as_absl_reads_them(words):
    flags = pytest.importorskip("absl.flags")
    try:
        expected = absl_values([*FILES, *words])
    except (flags.Error, ValueError):
        expected = None
    try:
        values, _ = read_flags([*FILES, *words])
        found = {name: getattr(values, name) for name in expected or ()} if expected else vars(values)
    except (UsageError, SystemExit):
        found = None
    assert found == expected
