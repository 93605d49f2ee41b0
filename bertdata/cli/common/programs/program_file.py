"""Reader of the TOML file that describes a program and its flags. The file is checked while it is read.

An example of such a file::

    name = "vendor/program.py"
    title = "Vendor program.py"
    purpose = "Vendor: what it does"
    source = "repository and commit, path of the file"
    published = ["--data_dir data --batch_size 8"]

    [keys]                       # configuration keys that the program fixes
    optimiser = "adamw"

    [flags]
    "-d --data_dir" = { key = "train_data", required = true, meaning = "directory of the data" }
    "--batch_size" = { kind = "integer", default = 32, key = "batch_size" }
    "--verbose" = { kind = "switch", without_effect = "logs have this trainer's own form" }
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bertdata.cli.common.programs.command_line import ABSL, ABSL_APP, ARGPARSE, HUGGING_FACE, SYNTAXES
from bertdata.cli.common.programs.flag import ABSL_KINDS, KINDS, Flag
from bertdata.cli.common.programs.hugging_face import add_hugging_face_spellings
from bertdata.cli.common.programs.like_command import LikeCommand
from bertdata.cli.common.programs.program import Program, Table
from bertdata.config.value_check import check_names, check_values
from bertdata.errors import SettingsError, SettingsFileError
from bertdata.io.toml_text import TomlFile

DEFAULT = "default"
"""Name under which a version can refer to the default version in ``follows``."""

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_TABLE = {"type": "object"}
_CHANGES = {"follows": _TEXT, "without": _TEXTS, "keys": _TABLE, "flags": _TABLE, "commands": _TABLE}
_REQUIRED = ("name", "title", "purpose", "source", "published")
_PROGRAM = {
    **dict.fromkeys(("name", "title", "purpose", "source", "compared", "work", "flags_of"), _TEXT),
    "published": {"type": "array", "items": _TEXT, "minItems": 1},
    "also_published": _TEXTS,
    "position": {"type": "integer", "minimum": 1},
    "syntax": {"enum": list(SYNTAXES)},
    **dict.fromkeys(("keys", "flags", "variables", "commands", "versions"), _TABLE),
}
_FLAG = {
    "kind": {"enum": list(KINDS)},
    "default": {"type": ["integer", "number", "boolean", "string", "array"]},
    "meaning": _TEXT,
    "key": _TEXT,
    "values": {"type": ["array", "object"]},
    "count": {"enum": [2, "+", "?"]},
    "required": {"type": "boolean"},
    "without_effect": _TEXT,
    "warning": _TEXT,
}
_VARIABLE = {
    **{name: _FLAG[name] for name in ("default", "meaning", "key", "without_effect")},
    "kind": {"enum": ["text", "integer", "number"]},
}
_USUAL_KIND = "text"
_DEFAULTS = {"integer": "an integer", "number": "a number", "text": "a text", "lower-case text": "a text"}


def read_program(path: str, like_command: LikeCommand) -> Program:
    """Read the TOML file of a program.

    Raises SettingsFileError for the first fault, with a message of the form ``FILE:LINE: ...``.
    """
    return _ProgramFile(path, like_command).program()


class _ProgramFile:
    """Reader of one program's TOML file.

    In its methods, a ``place`` is the path of keys that leads to an entry, such as ("flags", "--lr").
    """

    def __init__(self, path: str, like_command: LikeCommand, syntax: str = ARGPARSE) -> None:
        self._toml, self._door, self._keys, self._syntax = (
            TomlFile(path),
            like_command,
            like_command.keys(),
            syntax,
        )
        self._folder = Path(path).parent

    def program(self) -> Program:
        """Return the program that the file describes."""
        facts = dict(self._toml.tables)
        self._check_entries(facts, _PROGRAM, ())
        for name in _REQUIRED:
            self._refuse_unless(bool(facts.get(name)), (), f"{name} is missing")
        self._syntax = facts.get("syntax", ARGPARSE)
        # The default version has the name "". Another version may be described by its differences from the
        # default version, or from a version that comes earlier in the file.
        versions = {"": self._read_tables((), self._read_shared_tables(facts))}
        for version, changes in facts.get("versions", {}).items():
            place = ("versions", version)
            self._check_table(changes, _CHANGES, place)
            versions[version] = self._read_tables(place, self._find_followed_tables(changes, versions, place))
        facts = {name: value for name, value in facts.items() if not isinstance(value, dict)}
        facts.pop("flags_of", None)
        return Program(
            like_command=self._door,
            path=self._toml.path,
            variables=self._read_variables(),
            versions={name: self._add_parser_spellings(tables) for name, tables in versions.items()},
            **facts,
        )

    def _read_shared_tables(self, facts: Mapping[str, Any]) -> Mapping[str, Table]:
        """Return the flags and keys of the other program that ``flags_of`` names, because this program has
        them too.
        """
        if "flags_of" not in facts:
            return {}
        shared = _ProgramFile(str(self._folder / facts["flags_of"]), self._door, self._syntax)
        shared._check_entries(shared._toml.tables, {"flags": _TABLE, "keys": _TABLE}, ())
        return {"": shared._apply_changes(Table(), ())}

    def _find_followed_tables(
        self, changes: Mapping[str, Any], versions: Mapping[str, Mapping[str, Table]], place: tuple[str, ...]
    ) -> Mapping[str, Table]:
        """Return the tables of the version that ``follows`` names, from which the new version differs.

        The result is empty if there is no ``follows``. The new version then lists all its flags.
        """
        if "follows" not in changes:
            return {}
        follows = "" if changes["follows"] == DEFAULT else changes["follows"]
        known = ", ".join(name or DEFAULT for name in versions)
        problem = f"follows is {changes['follows']!r}, expected a version above it: {known}"
        self._refuse_unless(follows in versions, (*place, "follows"), problem)
        return versions[follows]

    def _read_tables(self, place: tuple[str, ...], base: Mapping[str, Table]) -> dict[str, Table]:
        """Return the table of each sub-command.

        It contains the flags that all sub-commands share, then the flags of this sub-command.

        place: path of keys to the version's entry.
        base: tables of the version that this version follows.
        """
        # The sub-commands of ``base`` come first. A program without sub-commands has a single table with the
        # name "". A sub-command that is new in this version also starts from that table.
        commands = self._find_table(place).get("commands", {})
        names = list(dict.fromkeys([*(name for name in base if name or not commands), *commands])) or [""]
        found = dict[str, Table]()
        for name in names:
            table = self._apply_changes(base.get(name, base.get("", Table())), place)
            inner = (*place, "commands", name)
            if name in commands:
                self._check_table(commands[name], _CHANGES, inner)
                table = self._apply_changes(table, inner)
            found[name] = table
        return found

    def _apply_changes(self, table: Table, place: tuple[str, ...]) -> Table:
        """Return a copy of the table with the changes listed at ``place``: removed flags, added flags and
        keys.
        """
        rows = {flag.name: flag for flag in table.flags}
        changes = self._find_table(place)
        for spelling in changes.get("without", ()):
            name = spelling.lstrip("-").replace("-", "_")
            self._refuse_unless(
                name in rows, (*place, "without"), f"without names {spelling}, which is no flag"
            )
            del rows[name]
        rows |= self._read_flags(place)
        self._refuse_repeated(rows, place)
        keys = changes.get("keys", {})
        self._check_entries(keys, self._keys, (*place, "keys"))
        return Table(flags=list(rows.values()), keys={**table.keys, **keys})

    def _read_flags(self, place: tuple[str, ...]) -> dict[str, Flag]:
        """Return the flags that are listed at ``place``, by name."""
        found = dict[str, Flag]()
        for names, entry in self._find_table(place).get("flags", {}).items():
            at = (*place, "flags", names)
            words = names.split()
            is_named = bool(words) and all(word.startswith("-") and word.strip("-") for word in words)
            self._refuse_unless(is_named, at, f"{names!r} is no flag: expected --name, or -n --name")
            self._check_table(entry, _FLAG, at)
            flag = self._make_flag(names, entry, at)
            self._refuse_unless(flag.name not in found, at, f"{names} is there twice")
            found[flag.name] = flag
        return found

    def _read_variables(self) -> list[Flag]:
        """Return the environment variables, each described like a flag but without hyphens."""
        found = list[Flag]()
        for name, entry in self._toml.tables.get("variables", {}).items():
            at = ("variables", name)
            is_named = re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*", name) is not None
            problem = f"{name!r} is no variable: expected letters, digits and underscores"
            self._refuse_unless(is_named, at, problem)
            self._check_table(entry, _VARIABLE, at)
            found.append(self._make_flag(name, entry, at))
        return found

    def _make_flag(self, names: str, entry: Mapping[str, Any], place: tuple[str, ...]) -> Flag:
        """Return the flag that an entry of the file describes.

        names: spellings of the flag, separated by blanks.
        """
        kind, key, values, default = (entry.get(name) for name in ("kind", "key", "values", "default"))
        self._check_default(entry, place)
        if key is not None:
            self._check_key(key, values, place)
        kinds = ABSL_KINDS if self._syntax in (ABSL, ABSL_APP) else KINDS
        return Flag(
            names=names,
            kind=kinds[kind or _USUAL_KIND],
            default=tuple(default) if isinstance(default, list) else default,
            meaning=self._find_meaning(names, entry, place),
            key=key,
            values=values,
            count=entry.get("count"),
            required=entry.get("required", False),
            idle="without_effect" in entry,
            warning=entry.get("warning", ""),
        )

    def _check_key(self, key: str, values: Any, place: tuple[str, ...]) -> None:
        """Raise SettingsFileError for an unknown configuration key or a value that the key does not accept.

        values: the accepted values of the flag. A mapping says which value the key gets for each of them.
        """
        with self._name_place((*place, "key")):
            check_names([key], self._keys)
        meant = values.values() if isinstance(values, dict) else ()
        with self._name_place((*place, "values")):
            for value in meant:
                check_values({key: value}, self._keys)

    def _find_meaning(self, names: str, entry: Mapping[str, Any], place: tuple[str, ...]) -> str:
        """Return the line that the help shows for a flag.

        It is the flag's ``meaning``, the description of its configuration key, or the reason why it has no
        effect.
        """
        if "without_effect" in entry:
            both = entry.keys() & {"meaning", "key"}
            problem = f"{names}: a flag without effect has no meaning and no key"
            self._refuse_unless(not both, place, problem)
            return str(entry["without_effect"])
        if "meaning" not in entry and "key" in entry:
            description: str = self._keys[entry["key"]]["description"]
            # Cut off the default of our own key, because the other program may have another default.
            return description.partition(" (default")[0]
        problem = f"{names} has no meaning: say it, or name its key, or why it is without_effect"
        self._refuse_unless(bool(entry.get("meaning")), place, problem)
        return str(entry["meaning"])

    def _check_default(self, entry: Mapping[str, Any], place: tuple[str, ...]) -> None:
        """Raise SettingsFileError if a default has the wrong type or the wrong number of values."""
        if "default" not in entry:
            return
        default, count, kind = entry["default"], entry.get("count"), entry.get("kind", _USUAL_KIND)
        values = default if isinstance(default, list) else [default]
        place = (*place, "default")
        expected = _DEFAULTS.get(kind, "true or false")
        fits = all(_has_type(value, kind) for value in values)
        self._refuse_unless(fits, place, f"default is {default!r}, expected {expected}")
        if isinstance(default, list) or count == 2:
            wanted = {None: "one value", "?": "one value", 2: "two values"}.get(count)
            is_right = wanted is None or (count == 2 and len(values) == 2)
            self._refuse_unless(is_right, place, f"default is {default!r}, expected {wanted}")

    def _refuse_repeated(self, rows: Mapping[str, Flag], place: tuple[str, ...]) -> None:
        """Raise SettingsFileError if two flags have the same spelling."""
        seen = set[str]()
        for flag in rows.values():
            for spelling in flag.spellings:
                problem = f"{spelling} is the spelling of two flags"
                self._refuse_unless(spelling not in seen, (*place, "flags", flag.names), problem)
                seen.add(spelling)

    def _add_parser_spellings(self, tables: Mapping[str, Table]) -> dict[str, Table]:
        """Return the tables with the additional spellings that the program's parser accepts."""
        if self._syntax != HUGGING_FACE:
            return dict(tables)
        return {
            name: Table(flags=add_hugging_face_spellings(table.flags), keys=table.keys)
            for name, table in tables.items()
        }

    def _find_table(self, place: tuple[str, ...]) -> Mapping[str, Any]:
        """Return the TOML table at a place in the file."""
        found: Mapping[str, Any] = self._toml.tables
        for name in place:
            found = found[name]
        return found

    def _check_table(self, found: Any, schemas: Mapping[str, Any], place: tuple[str, ...]) -> None:
        """Raise SettingsFileError unless ``found`` is a TOML table whose entries fit the schemas."""
        self._refuse_unless(isinstance(found, dict), place, f"{place[-1]} is {found!r}, expected a table")
        self._check_entries(found, schemas, place)

    def _check_entries(
        self, found: Mapping[str, Any], schemas: Mapping[str, Any], place: tuple[str, ...]
    ) -> None:
        """Raise SettingsFileError for an unknown name or a value that does not fit its schema."""
        for name, value in found.items():
            with self._name_place((*place, name)):
                check_names([name], schemas)
                check_values({name: value}, schemas)

    def _refuse_unless(self, holds: bool, place: tuple[str, ...], problem: str) -> None:
        """Raise SettingsFileError with this problem and place unless ``holds`` is true."""
        with self._name_place(place):
            if not holds:
                raise SettingsError(problem)

    @contextmanager
    def _name_place(self, place: tuple[str, ...]) -> Iterator[None]:
        """Return a context manager that adds the file and line of a place to SettingsErrors of its block."""
        try:
            yield
        except SettingsError as error:
            where = self._toml.where(place) if place else self._toml.path
            raise SettingsFileError(f"{where}: {error}") from None


def _has_type(value: Any, kind: str) -> bool:
    """Return True if a flag's default value has the right type.

    A flag that takes a text may also have the default False, which means that there is no text.

    kind: name of the type, as in the program's file.
    """
    if kind in ("integer", "number"):
        return not isinstance(value, bool) and isinstance(value, int if kind == "integer" else int | float)
    if kind in ("text", "lower-case text"):
        return isinstance(value, str) or value is False
    return isinstance(value, bool)
