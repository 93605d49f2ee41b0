"""Names that a user types, and only these, are found by a string; their edges make no circle."""

import ast
import subprocess
import sys
from dataclasses import dataclass, field

import pytest

from bertdata.config.declared import setting
from bertdata.errors import SettingsError
from tests.support.house import ORDER, circles, draw_plugins, plugin_calls, read_sources, upward
from tests.support.paths import ROOT
from trainer.config import settings
from trainer.config.flags import make_config
from trainer.config.help import make_help
from trainer.config.sections.reports import ReportsSection
from trainer.config.settings import Config
from trainer.plugins import TABLE, find, list_names
from trainer.run.usage import COMMANDS

SOURCES = read_sources(ROOT)
TRAINER = {name: source for name, source in SOURCES.items() if name.startswith("trainer.")}
ARROWS = draw_plugins(SOURCES, TABLE)


def literal_lookups(source: str) -> list[str]:
    """The calls of find whose kind and name are both literals."""
    return [
        ast.unparse(call)
        for call in plugin_calls(source)
        if all(isinstance(argument, ast.Constant) for argument in call.args)
    ]


def test_nothing_is_looked_up_by_two_literals():
    assert {name: found for name, source in TRAINER.items() if (found := literal_lookups(source))} == {}


def test_a_planted_look_up_by_two_literals_is_found():
    assert literal_lookups('find("log", "bar")(1)') == ["find('log', 'bar')"]
    assert literal_lookups('find("log", name)(1)') == []


def test_no_modules_import_each_other_in_a_circle_with_the_edges_of_plugins_drawn():
    assert circles(ARROWS) == []


def test_the_edges_of_plugins_run_downwards():
    assert upward(ARROWS, ORDER) == []


def test_a_planted_circle_through_a_plugin_is_found():
    planted = SOURCES | {
        "trainer.devices.cpu": SOURCES["trainer.devices.cpu"] + "\nimport trainer.devices.choice\n"
    }
    assert ["trainer.devices.choice", "trainer.devices.cpu"] in circles(draw_plugins(planted, TABLE))


def test_every_name_can_be_found():
    for kind in TABLE:
        for name in list_names(kind):
            assert find(kind, name) is not None


def test_an_object_of_ones_own_is_found_by_its_module_and_name(tmp_path, monkeypatch):
    (tmp_path / "own_presets.py").write_text("FAST = 7\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert find("optimiser", "own_presets:FAST") == 7
    with pytest.raises(SettingsError, match="optimiser 'own_presets:SLOW': .*has no attribute 'SLOW'"):
        find("optimiser", "own_presets:SLOW")


def test_a_wrong_name_is_told_the_nearest():
    with pytest.raises(SettingsError, match="no such optimiser; .*; the nearest known is lamb-nvidia$"):
        find("optimiser", "lamb-nvida")


def test_every_command_has_its_purpose():
    assert sorted(COMMANDS) == sorted(list_names("command"))


@pytest.mark.parametrize("words", ["--help", "pretrain --help", "evaluate --help", "predict --help"])
def test_help_imports_no_torch(words):
    code = (
        "import sys; from trainer.__main__ import main\n"
        f"try: status = main({words.split()!r})\nexcept SystemExit as end: status = end.code\n"
        "sys.exit(1 if 'torch' in sys.modules else status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_a_key_added_to_a_section_works_at_once_in_flag_help_file_and_checkpoint(monkeypatch):
    """The key is declared in its section alone."""

    @dataclass(frozen=True, kw_only=True)
    class WithKey(ReportsSection):
        cats: int = setting(3, "number of cats", least=1, common=True)

    @dataclass(frozen=True, kw_only=True)
    class WithCats(Config):
        reports: WithKey = field(default_factory=WithKey)

    caches = (
        settings.get_key_schemas,
        settings.get_known_names,
        settings.get_other_names,
        settings.get_phase_names,
    )
    with monkeypatch.context() as patch:
        patch.setattr(settings, "Config", WithCats)
        patch.setattr("trainer.config.flags.Config", WithCats)
        for one in caches:
            one.cache_clear()
        config = make_config(["--cats=5"])
        assert config.reports.cats == 5
        assert "number of cats" in make_help("python -m trainer pretrain").format_help()
        assert WithCats.of(**config.as_json()) == config
        with pytest.raises(SettingsError, match="cats is 0, expected 1 or more"):
            make_config(["--cats=0"])
    for one in caches:
        one.cache_clear()
