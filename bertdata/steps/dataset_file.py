"""The settings file (TOML) of ``create --config`` and ``segment --config``.

Its tables are the groups of settings in a manifest: text, tokenizer, objective, container. For a single phase
of a recipe, a table such as ``[phase2.objective]`` holds the settings. A small file::

    recipe = "nvidia"

    [tokenizer]
    vocab = "vocab.txt"

    [objective]
    dupe_factor = 3

Flags override the file, and the file overrides its recipe.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from bertdata.config.declared import derive_schemas
from bertdata.config.recipes import RECIPES, find_recipe
from bertdata.config.value_check import check_names, check_values
from bertdata.errors import SettingsError, SettingsFileError
from bertdata.examples.objectives import OBJECTIVES, find_objective
from bertdata.io.home import expand_values
from bertdata.sources.settings import RecordSettings
from bertdata.steps.create_request import CreateRequest, GivenDatasetSettings
from bertdata.steps.values import convert_path
from bertdata.text.part_settings import PartSettings
from bertdata.text.selection.settings import SelectionSettings
from bertdata.text.settings import SegmentSettings

_TEXT = "text"
_RECORDS = ("tokenizer", "objective", "container")
_PHASES = ("phase1", "phase2")
_DATASET_SCHEMAS: dict[str, dict[str, dict[str, Any]]] = {
    record: {
        item.name: derive_schemas(GivenDatasetSettings)[item.name]
        for item in fields(GivenDatasetSettings)
        if item.metadata["record"] == record
    }
    for record in _RECORDS
}
"""JSON schemas of the settings that belong to the dataset and not to its examples, by table and name."""
# As a flag, roles are a list of NAME=TOKEN. In a file they are a table.
_DATASET_SCHEMAS["tokenizer"]["roles"] = {**_DATASET_SCHEMAS["tokenizer"]["roles"], "type": "object"}
_TEXT_TYPES = {bool: "boolean", int: "integer", float: "number"}
_TEXT_SCHEMAS: dict[str, dict[str, Any]] = {
    item.name: {"type": _TEXT_TYPES.get(type(item.default), "string")}
    for kind in (SegmentSettings, PartSettings, RecordSettings, SelectionSettings)
    for item in fields(kind)
    if item.name not in ("records", "selection")
} | {"exclude": {"type": "array", "items": {"type": "string"}}}


@contextmanager
def apply_settings_file(
    request: CreateRequest,
) -> Iterator[tuple[CreateRequest, Mapping[int, dict[str, Any]]]]:
    """Yield the request completed by its file's settings, and by phase the settings that apply only to it.

    If the ``with`` block raises a SettingsError about a setting of the file, a SettingsFileError with the
    line of this setting replaces it.
    """
    if request.config is None:
        yield request, {}
        return
    given = request.dataset_settings | request.example_settings
    file = DatasetFile(convert_path(request.config), given.get("objective"), given.get("recipe"))
    with file.name_file_in_errors(given):
        yield request.with_settings(file.merge_given(given)), file.list_phase_settings(given)


class DatasetFile:
    """The settings in a TOML file of ``create --config`` or ``segment --config``.

    The constructor checks the file. For the first wrong key it raises SettingsFileError, whose message begins
    with ``FILE:LINE``.
    """

    def __init__(self, path: str, objective: str | None = None, recipe: str | None = None) -> None:
        """Read and check the file.

        path: the file.
        objective: name of the objective that a flag gives. It overrides the file's objective.
        recipe: name of the recipe that a flag gives. It overrides the file's recipe.
        """
        from bertdata.io.toml_text import TomlFile  # imported here: on Python 3.10 it needs tomli

        self._toml = TomlFile(path)
        self._toml.tables = expand_values(self._toml.tables)
        tables = self._toml.tables
        self._check_names(tables, ("recipe", _TEXT, *_RECORDS, *_PHASES), ())
        self._check(tables, {"recipe": {"enum": tuple(RECIPES)}}, ())
        for name in tables.keys() - {"recipe"}:
            self._refuse_unless(isinstance(tables[name], dict), (name,), f"expected a table, [{name}]")
        self.recipe: str | None = recipe or tables.get("recipe")
        self._objective = objective or self._find_objective()
        self._check_table((_TEXT,), _TEXT_SCHEMAS)
        self._check_records(())
        for phase in _PHASES:
            self._check_names(tables.get(phase, {}), _RECORDS, (phase,))
            self._check_records((phase,))

    @property
    def text(self) -> dict[str, Any]:
        """Settings of the text stage (segmentation of articles or records), from the table ``text``."""
        return dict(self._toml.tables.get(_TEXT, {}))

    def merge_given(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the file's settings of dataset and examples by name, overridden by the settings ``given``.

        If a tokeniser is given, all tokeniser settings of the file are left out, such as roles. If shuffle
        "none" is given, num_shards is left out.
        """
        found = {} if self.recipe is None else {"recipe": self.recipe}
        for record in _RECORDS:
            found |= {
                name: value
                for name, value in self._find_table(record).items()
                if name in _DATASET_SCHEMAS[record]
            }
        if "vocab" in given or "tokenizer" in given:
            found = {
                name: value for name, value in found.items() if name not in _DATASET_SCHEMAS["tokenizer"]
            }
        if given.get("shuffle") == "none":
            found.pop("num_shards", None)
        return {**found, **self._read_settings(()), **given}

    def list_phase_settings(self, given: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
        """Return the file's settings for single phases, by phase number.

        Settings given as flags are left out.
        """
        return {
            number: {name: value for name, value in found.items() if name not in given}
            for number, phase in enumerate(_PHASES, 1)
            if (found := self._read_settings((phase,)))
        }

    @contextmanager
    def name_file_in_errors(self, flags: Collection[str], *, of_text: bool = False) -> Iterator[None]:
        """Add ``FILE:LINE`` to a SettingsError in the ``with`` block if the wrong setting stands in the file.

        flags: names of settings that were given as flags, so that the file's values were not used.
        of_text: True if the block uses the settings in the table ``text``, False if it uses the others.
        """
        try:
            yield
        except SettingsFileError:
            raise
        except SettingsError as error:
            # The error message ("dupe_factor is 0, expected ...") does not say that the value comes from a
            # file. So search the message for each key of the file, spelt like dupe_factor or like the flag
            # --dupe-factor. If the message contains several keys, the first of them is the wrong setting.
            places = []
            for keys in self._list_keys():
                flag = {"roles": "role", "name": "objective"}.get(keys[-1], keys[-1])
                words = re.compile(rf"\b{flag.replace('_', '[_-]')}\b")
                is_text = keys[0] == _TEXT
                if is_text == of_text and keys[-1] not in flags and (found := words.search(str(error))):
                    places.append((found.start(), keys))
            if not places:
                raise
            raise SettingsFileError(f"{self._toml.where(min(places)[1])}: {error}") from None

    def _list_keys(self) -> Iterator[tuple[str, ...]]:
        """Yield the path of every key in the file."""
        for name, table in self._toml.tables.items():
            if not isinstance(table, dict):
                yield (name,)
                continue
            for key, value in table.items():
                yield from ((name, key, inner) for inner in value) if name in _PHASES else [(name, key)]

    def _find_table(self, *keys: str) -> Mapping[str, Any]:
        """Return the table at this path of keys. Returns an empty table if the file does not have it."""
        found: Mapping[str, Any] = self._toml.tables
        for key in keys:
            found = found.get(key, {})
        return found

    def _read_settings(self, place: tuple[str, ...]) -> dict[str, Any]:
        """Return the settings of examples by field.

        place: path of the table that holds the tables with the settings, such as ``("phase2",)``. Empty for
            the whole file.
        """
        found: dict[str, Any] = {}
        for record in _RECORDS:
            others = _DATASET_SCHEMAS[record]
            found |= {
                name: value for name, value in self._find_table(*place, record).items() if name not in others
            }
        if "name" in found:
            found["objective"] = found.pop("name")
        return found

    def _find_objective(self) -> str:
        """Return the objective's name from the file's table ``objective``, or the recipe's objective if it
        has none.
        """
        table = self._find_table("objective")
        dialect = self._find_table("tokenizer").get("dialect", "mlperf")
        recipe = find_recipe(self.recipe or (dialect if isinstance(dialect, str) else "mlperf"))
        name = table.get("name", recipe.objective) if isinstance(table, dict) else recipe.objective
        known = ", ".join(key for key, one in OBJECTIVES.items() if not one.unlearned)
        self._refuse_unless(
            isinstance(name, str) and name in OBJECTIVES,
            ("objective", "name"),
            f"name is {name!r}, expected one of {known}; one of your own is named on the command line too, "
            "--objective package.module:NAME, since no file may choose code to import",
        )
        return str(name)

    def _check_records(self, place: tuple[str, ...]) -> None:
        """Check the tables tokenizer, objective and container of the file, or of one phase.

        place: path of the table that holds these tables, such as ``("phase2",)``. Empty for the whole file.
        """
        kind = find_objective(self._objective).settings_type
        records = {item.name: item.metadata.get("record") for item in fields(kind)}
        schemas: dict[str, dict[str, Any]] = {record: {} for record in _RECORDS}
        for name, schema in derive_schemas(kind).items():
            if name != "objective":
                schemas[str(records[name])][name] = schema
        if not place:
            schemas["objective"]["name"] = {"type": "string"}
            for record, others in _DATASET_SCHEMAS.items():
                schemas[record] |= others
        homes = {name: record for record, known in schemas.items() for name in known}
        for record in _RECORDS:
            for name in self._find_table(*place, record):
                home = homes.get(name, record)
                self._refuse_unless(
                    home == record, (*place, record, name), f"{name} belongs in the table [{home}]"
                )
            self._check_table((*place, record), schemas[record])

    def _check_table(self, place: tuple[str, ...], schemas: Mapping[str, Any]) -> None:
        """Check the names and the values of all settings in a table of the file."""
        found = self._find_table(*place)
        self._refuse_unless(isinstance(found, dict), place, f"expected a table, [{'.'.join(place)}]")
        self._check_names(found, schemas, place)
        self._check(found, schemas, place)

    def _check_names(self, found: Mapping[str, Any], known: Any, place: tuple[str, ...]) -> None:
        """Raise SettingsFileError for the first setting in a table whose name is not in the schemas."""
        for name in found:
            with self._name_line_in_errors((*place, name)):
                check_names([name], known)

    def _check(self, found: Mapping[str, Any], schemas: Mapping[str, Any], place: tuple[str, ...]) -> None:
        """Raise SettingsFileError for the first setting in a table whose value the schema does not allow."""
        for name, value in found.items():
            if name in schemas:
                with self._name_line_in_errors((*place, name)):
                    check_values({name: value}, schemas)

    def _refuse_unless(self, holds: bool, keys: tuple[str, ...], problem: str) -> None:
        """Raise SettingsFileError, with the line of the key in the file, if ``holds`` is False.

        keys: path of the key in the file, such as ``("objective", "name")``.
        problem: what is wrong, for the message.
        """
        with self._name_line_in_errors(keys):
            if not holds:
                raise SettingsError(problem)

    @contextmanager
    def _name_line_in_errors(self, keys: tuple[str, ...]) -> Iterator[None]:
        """Raise a SettingsError in the block as SettingsFileError with the line of the key."""
        try:
            yield
        except SettingsError as error:
            raise SettingsFileError(f"{self._toml.where(keys)}: {error}") from None
