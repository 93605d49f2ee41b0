"""Parser that reads command lines as absl-py reads them for TensorFlow 1 scripts (``tf.flags``,
``tf.app.run``).

Such a script silently ignores unknown flags, and words that are not flags. This parser also prints a warning.
"""

import io
import os
from argparse import ArgumentTypeError
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from bertdata.errors import SettingsError
from bertdata.io import storage
from bertdata.io.foreign_text import MOST_DIGITS

HELP_FLAGS = ("h", "help", "helpshort", "helpfull", "helpxml", "?")
OWN_FLAGS = {
    "logtostderr": True,
    "alsologtostderr": True,
    "showprefixforinfo": True,
    "run_with_pdb": True,
    "pdb_post_mortem": True,
    "pdb": True,
    "run_with_profiling": True,
    "use_cprofile_for_profiling": True,
    "log_dir": False,
    "v": False,
    "verbosity": False,
    "stderrthreshold": False,
    "logger_levels": False,
    "profile_file": False,
}
"""Flags that absl itself adds to every script. They have no effect here. True means that the flag is boolean.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandLine:
    """A command line that was parsed.

    flags: the script's flags in order, each as ``--name=value``.
    unknown: names of flags that the script does not have.
    warnings: lines that say which words were ignored, and why.
    """

    flags: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def read_command_line(arguments: Sequence[str], known: Mapping[str, bool]) -> CommandLine:
    """Parse a command line by absl's rules.

    A flag starts with one or two dashes. Its value follows after ``=`` or is the next word, even if that word
    looks like a flag. A boolean flag without ``=`` is true, so in ``--flag false`` the word ``false`` is
    ignored. ``--noNAME`` makes the boolean flag NAME false. ``--flagfile=FILE`` is replaced with the lines of
    FILE. ``--`` ends the flags.

    known: the script's flags. The value True marks a boolean flag.

    Raises SettingsError for a flag without its value, and for ``--noNAME=VALUE``.
    """
    line = CommandLine()
    words = iter(_expand_flag_files(arguments, line.warnings))
    known = {**OWN_FLAGS, **known}
    unknown: list[tuple[str, str]] = []
    tolerated: set[str] = set()
    bare_boolean = ""
    # bare_boolean is the word before the present word, if it was a boolean flag without "=". The warning
    # about an ignored word such as "false" can then explain that the flag before it takes no separate value.
    for word in words:
        before, bare_boolean = bare_boolean, ""
        if word == "--":
            if rest := list(words):
                line.warnings.append(f"{' '.join(rest)}: comes after --, so it is ignored, as by the script")
            break
        name, equals, value = _split_flag(word)
        # --noNAME switches off a boolean flag NAME, unless the script has a flag that is itself named noNAME.
        is_off = name not in known and name.startswith("no") and known.get(name[2:], False)
        if not name:
            line.warnings.append(_describe_ignored_word(word, before))
        elif name in HELP_FLAGS:
            line.flags.append("--help")
        elif name == "undefok":
            tolerated.update(part.strip() for part in _take_value(word, equals, value, words).split(","))
        elif is_off and equals:
            raise SettingsError(f"{word}: --{name} takes no value")
        elif name not in known and not is_off:
            unknown.append((name, word))
        else:
            is_boolean = is_off or known[name]
            if is_boolean and not equals:
                bare_boolean, value = word, "false" if is_off else "true"
            else:
                value = _take_value(word, equals, value, words)
            name = name[2:] if is_off else name
            if name in OWN_FLAGS:
                line.warnings.append(f"{word}: has no effect here")
            else:
                line.flags.append(f"--{name}={value}")
    # Unknown flags that the flag --undefok lists cause no warning. The same holds for these names with "no"
    # in front.
    tolerated |= {f"no{name}" for name in tolerated}
    unknown = [(name, word) for name, word in unknown if name not in tolerated]
    line.unknown.extend(name for name, _ in unknown)
    line.warnings.extend(_describe_unknown_flag(name, word, known) for name, word in unknown)
    return line


def _split_flag(word: str) -> tuple[str, str, str]:
    """Split a word into the name of the flag, the ``=`` and the value.

    The name is empty if the word is not a flag.
    """
    if not word.startswith("-"):
        return "", "", ""
    return word[2 if word.startswith("--") else 1 :].partition("=")


def _take_value(word: str, equals: str, value: str, words: Iterator[str]) -> str:
    """Return a flag's value. If the word has no ``=``, the value is the next word.

    words: the rest of the command line.

    Raises SettingsError if there is no next word.
    """
    if equals:
        return value
    following = next(words, None)
    if following is None:
        raise SettingsError(f"{word}: has no value")
    return following


def _describe_ignored_word(word: str, before: str) -> str:
    """Return the warning about a word that is not a flag.

    before: the word before it if that is a boolean flag, otherwise empty.
    """
    if not before:
        return f"{word!r} is no flag and is ignored, as by the script"
    flag, off = before.lstrip("-"), before.lstrip("-").startswith("no")
    now = "false" if off else "true"
    name = flag[2:] if off else flag
    return (
        f"{before} {word}: a boolean flag takes its value only after =, so {name} is {now} and {word!r} is "
        f"ignored, as by the script; write --{name}=VALUE"
    )


def _describe_unknown_flag(name: str, word: str, known: Mapping[str, bool]) -> str:
    """Return the warning about an unknown flag, which suggests the most similar known flag."""
    near = get_close_matches(name, [other for other in known if other not in OWN_FLAGS], n=1)
    hint = f"; did you mean --{near[0]}?" if near else ""
    return f"{word}: no such flag; it is ignored, as by the script{hint}"


# --- files of flags (--flagfile) -----------------------------------------------------------------


def _expand_flag_files(arguments: Sequence[str], warnings: list[str]) -> list[str]:
    """Return the command line with each ``--flagfile`` replaced with the lines of its file.

    Words after ``--`` are not changed.
    """
    expanded: list[str] = []
    words = iter(arguments)
    for word in words:
        if word in ("--flagfile", "-flagfile"):
            expanded += _read_flag_file(_take_value(word, "", "", words), (), warnings)
        elif (path := _find_flag_file(word)) is not None:
            expanded += _read_flag_file(path, (), warnings)
        else:
            expanded.append(word)
            if word == "--":
                break
    return [*expanded, *words]


def _find_flag_file(word: str) -> str | None:
    """Return the path in a word ``--flagfile=PATH``, or None for any other word."""
    for prefix in ("--flagfile=", "-flagfile="):
        if word.startswith(prefix):
            return word.removeprefix(prefix).strip()
    return None


def _read_flag_file(path: str, within: tuple[str, ...], warnings: list[str]) -> list[str]:
    """Return the lines of a file of flags, without empty lines and comments (``#`` or ``//``).

    A line ``--flagfile=FILE`` is replaced with the lines of that file. If the file is one of ``within``,
    reading it would never end, so the line is skipped with a warning.

    within: the files that are being read, outermost first.
    """
    path = os.path.expanduser(path)
    if not path:
        return []
    if path in within:
        warnings.append(f"--flagfile={path}: the file names itself, which is ignored, as by the script")
        return []
    found: list[str] = []
    for line in _read_lines(path):
        if line.isspace() or line.startswith(("#", "//")):
            continue
        if (inner := _find_flag_file(line)) is not None:
            found += _read_flag_file(inner, (*within, path), warnings)
        elif line in ("--flagfile", "-flagfile"):
            raise SettingsError(f"{path}: {line} names no file; write {line}=FILE")
        else:
            found.append(line.strip())
    return found


def _read_lines(path: str) -> list[str]:
    """Return the lines of a text file. Raises SettingsError if it is not UTF-8."""
    try:
        text = storage.read_bytes(path).decode()
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: is no flag file: not UTF-8") from None
    return io.StringIO(text, newline=None).readlines()


# --- functions that convert the values of flags, for argparse ------------------------------------


def parse_absl_boolean(text: str) -> bool:
    """Convert the text of a flag's value to a boolean, for argparse. It may be true, t, 1, false, f or 0."""
    known = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
    if text.lower() not in known:
        raise ArgumentTypeError(f"{text!r} is neither true nor false")
    return known[text.lower()]


def parse_absl_integer(text: str) -> int:
    """Convert the text of a flag's value to an integer, for argparse.

    It may be hexadecimal (0x) or octal (0o).
    """
    base = {"0o": 8, "0x": 16}.get(text[:2], 10) if len(text) > 2 else 10
    try:
        # This limits the digits of all numbers, because Python itself limits only those of decimal numbers.
        if len(text) <= MOST_DIGITS:
            return int(text, base)
    except ValueError:
        pass
    raise ArgumentTypeError(f"{text!r:.80} is not an integer")
