"""Home directories in words and files of settings that no shell has expanded."""

from pathlib import Path

import pytest

from bertdata.io.home import expand_home, expand_values, expand_words


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", "/home/me")
    return tmp_path


@pytest.mark.parametrize(
    ("word", "expanded"),
    [
        ("--output-dir=~/run", "--output-dir=/home/me/run"),
        ("~/run", "/home/me/run"),
        ("-o=~/run", "-o=/home/me/run"),
        ("--train-data=~/a+~/b", "--train-data=/home/me/a+/home/me/b"),
        ("--train-data=~/a*0.7+~/b*0.3", "--train-data=/home/me/a*0.7+/home/me/b*0.3"),
        ("--input_file=~/a,~/b", "--input_file=/home/me/a,/home/me/b"),
        ("--input=~/part-*", "--input=/home/me/part-*"),
        ("--output-dir=~/a run", "--output-dir=/home/me/a run"),
    ],
)
def test_a_path_begins_with_the_home_directory(word, expanded):
    assert expand_home(word) == expanded


@pytest.mark.parametrize(
    "word",
    ["--special=~", "~", "run~/x", "a/~/b", "--text=a ~/b", "see +~/b and", "--delimiter=~", "x=y=~/z", ""],
)
def test_what_is_no_path_stays(word):
    assert expand_home(word) == word


def test_a_users_directory_is_found_and_an_unknown_users_name_stays():
    assert expand_home("--a=~root/x") == f"--a={Path('~root').expanduser()}/x"
    assert expand_home("~nobody-of-this-name/x") == "~nobody-of-this-name/x"


def test_all_texts_of_a_file_are_looked_at():
    given = {"train_data": "~/a+~/b", "files": ["~/c", 3, {"inner": "~/d"}], "steps": 5}
    assert expand_values(given) == {
        "train_data": "/home/me/a+/home/me/b",
        "files": ["/home/me/c", 3, {"inner": "/home/me/d"}],
        "steps": 5,
    }
    assert expand_words(["create", "~/p", "--output=~/o"]) == ["create", "/home/me/p", "--output=/home/me/o"]
