"""docs/training.md and docs/devices.md against the code: schema, commands, configurations, links."""

import json
import re
import shlex

import pytest

from schemas.faults import faults
from tests.support.paths import ROOT
from tools.configuration_page import SOURCES, draw_pictures, make_page
from tools.program_pages import CONFIGURATION, FOLDER, PICTURES, SCHEMAS, make_pages, make_schemas
from trainer.config.files import find_shipped_configs
from trainer.config.flags import make_config, make_configs
from trainer.config.model import ModelConfig
from trainer.config.settings import Config
from trainer.plugins import list_names

PAGE = ROOT / "docs" / "training.md"
TEXT = PAGE.read_text(encoding="utf-8")
DEVICES = PAGE.with_name("devices.md").read_text(encoding="utf-8")


def commands(page: str) -> list[str]:
    """The trainer's commands in the page's blocks."""
    blocks = "\n".join(re.findall(r"```\n(.*?)```", page, re.DOTALL)).replace("\\\n", " ").splitlines()
    return [line for line in blocks if " trainer pretrain " in line]


COMMANDS = commands(TEXT)


def test_the_pages_of_other_programs_are_their_tables():
    written = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert written == make_pages(), "python -m tools.program_pages writes them anew"


def test_the_published_schemas_are_what_the_code_declares():
    written = {name: (SCHEMAS / name).read_text(encoding="utf-8") for name in make_schemas()}
    assert written == make_schemas(), "python -m tools.program_pages writes them anew"
    config, model = Config.of(mode="lazy").as_json(), ModelConfig().as_json()
    assert not list(faults(config, json.loads(written["trainer.json"])))
    assert not list(faults(model, json.loads(written["model.json"])))


def test_the_page_of_the_configuration_is_what_the_code_declares():
    assert CONFIGURATION.read_text(encoding="utf-8") == make_page(), (
        "python -m tools.program_pages writes it anew"
    )
    assert sorted(SOURCES) == sorted(find_shipped_configs())


def test_the_pictures_of_the_schedules_are_what_the_code_computes():
    written = {path.name: path.read_text(encoding="utf-8") for path in PICTURES.glob("*.svg")}
    assert written == draw_pictures(), "python -m tools.program_pages draws them anew"
    assert [
        name
        for name in list_names("schedule")
        if f"| `{name}` | ![{name}](schedules/{name}.svg) |" not in TEXT
    ] == []


def words(command: str) -> list[str]:
    """The words after pretrain."""
    found = shlex.split(command)
    return found[found.index("pretrain") + 1 :]


def configured(command: str) -> Config:
    return make_config(words(command))


@pytest.mark.parametrize("command", [*COMMANDS, *commands(DEVICES)])
def test_commands_are_understood(command):
    number = re.search(r" (?:-np|--nproc-per-node|--world.size) (\d+) ", f"{command} ")
    for config in make_configs(words(command)):
        assert config.data.train_data or config.data.generated_data
        assert config.run.output_dir or config.run.compile_only
        assert config.update.examples(int(number[1]) if number else 1) > 0


@pytest.mark.parametrize("page", [TEXT, DEVICES])
def test_links_lead_somewhere(page):
    for place in re.findall(r"\]\(([^)]+)\)", page):
        name, _, heading = place.partition("#")
        text = (PAGE.parent / name).read_text(encoding="utf-8") if name else page
        headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        assert not heading or heading in [
            re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in headings
        ], place


def test_every_device_has_its_section_and_its_line():
    names = {"cpu": "CPU", "cuda": "CUDA", "hpu": "Gaudi", "ipu": "IPU", "xla": "TPU"}
    for name, title in names.items():
        assert f"\n| `{name}`" in DEVICES
        section = DEVICES.split(f"\n## {title}\n")[1].split("\n## ")[0]
        assert "--compile-only" in section or name == "cuda"
        assert "rofile" in section or name == "cpu"
        assert "pip install" in section
        used = {config.run.device for command in commands(section) for config in make_configs(words(command))}
        assert used == {name}
