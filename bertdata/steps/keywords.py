"""Functions that take the fields of a request dataclass as keyword arguments.

A request is a frozen dataclass with all arguments of a step. For every argument it declares the type, the
default and the help, only once. The command line, Python and Beam all fill the same request.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ParamSpec, TypeVar

from bertdata._native import Engine
from bertdata.config.declared import setting
from bertdata.config.value_check import check_names, suggest_known
from bertdata.errors import SettingsError
from bertdata.steps.progress import GivenProgress
from bertdata.steps.values import check_engine, convert_path, count_workers, list_paths, list_sources

Keywords = ParamSpec("Keywords")
Request = TypeVar("Request")
Result = TypeVar("Result")

OWN_SETTINGS = "own_settings"
"""Name of the field that collects keywords without a field of their own. Not every request has this field."""

_LIKE_A_SLIP = 0.8
"""Least similarity to a field's name for a keyword that is taken for that name, written wrongly."""

OBJECTIVE_HELP = """\
training objective of the examples (default: read from their manifest or fields). An objective that you
wrote must be named with this flag, because no file may choose which code is imported"""
"""Help text of the argument ``objective``, for steps that read existing examples."""

PUNKT_TABLES_HELP = """\
directory of NLTK's punkt_tab tables for the language, checked by md5 (default: each worker finds or downloads
them, as bertdata fetch punkt does)"""


@dataclass(frozen=True, kw_only=True)
class GivenProcesses:
    """Request fields that say how a step runs, such as the number of processes.

    They do not change the step's output.
    """

    workers: int | None = setting(None, "processes to use; None: one per core")
    progress: GivenProgress = field(
        default=None,
        compare=False,
        metadata={
            "help": "function that is called now and then with a StepProgress, what is done so far; None: a "
            "bar in a notebook; False: no bar"
        },
    )

    def __post_init__(self) -> None:
        count_workers(self.workers)


@dataclass(frozen=True, kw_only=True)
class GivenRun(GivenProcesses):
    """Request fields that say how a step with C++ kernels runs. They do not change its output."""

    engine: Engine | None = setting(
        None,
        "native: the C++ kernels (None: native if they are built); python: the slow, readable reference code",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_engine(self.engine)


def collect_given(request: Any, group: type[Any]) -> dict[str, Any]:
    """Return the fields that the class ``group`` declares, by name, if they are not None in the request."""
    values = {item.name: getattr(request, item.name) for item in fields(group)}
    return {name: value for name, value in values.items() if value is not None}


def convert_paths(
    request: Any,
    *,
    paths: tuple[str, ...] = (),
    lists: tuple[str, ...] = (),
    sources: tuple[str, ...] = (),
) -> None:
    """Convert a new request's paths to strings in place. Called in the request's ``__post_init__``.

    A field that is None stays None. Raises SettingsError for a value that is not a path.

    paths: names of fields with one path.
    lists: names of fields with one or several paths.
    sources: names of fields with sources of text, which are paths or records in memory.
    """
    for names, as_text in ((lists, list_paths), (paths, convert_path), (sources, list_sources)):
        for name in names:
            value = getattr(request, name)
            if value is not None:
                object.__setattr__(request, name, as_text(value))


def accept_keywords(
    kind: Callable[Keywords, Request],
) -> Callable[[Callable[[Request], Result]], Callable[Keywords, Result]]:
    """Return a decorator for functions whose argument is a request.

    The decorated function takes the request's fields as arguments instead, and builds the request from them.
    Editors, type checkers and ``help`` see the fields' names, types and defaults. The help of each field is
    appended to the function's docstring.

    kind: the request's dataclass.
    """

    def decorate(step: Callable[[Request], Result]) -> Callable[Keywords, Result]:
        @functools.wraps(step)
        def call(*places: Keywords.args, **keywords: Keywords.kwargs) -> Result:
            named = _move_own_settings(kind, keywords, step.__name__)
            try:
                signature.bind(*places, **named)
            except TypeError as error:  # an argument is missing, or there are too many
                raise SettingsError(f"{step.__name__}: {error}") from None
            return step(kind(*places, **named))

        signature = inspect.signature(kind)
        result = inspect.signature(step).return_annotation
        call.__signature__ = signature.replace(return_annotation=result)  # type: ignore[attr-defined]
        call.__doc__ = f"{inspect.getdoc(step)}\n\n{_list_help(kind)}"
        return call

    return decorate


def _move_own_settings(kind: Any, keywords: dict[str, Any], step: str) -> dict[str, Any]:
    """Move keywords that are not fields into ``own_settings``, if the request has that field.

    step: name of the function, for the message.

    Raises SettingsError for a keyword that is unknown, and names the most similar known one. If the request
    has ``own_settings``, a keyword is refused here only if it looks like a field that was written wrongly.
    Otherwise the objective decides.
    """
    known = {item.name for item in fields(kind)}
    own = {name: value for name, value in keywords.items() if name not in known}
    if OWN_SETTINGS not in known:
        check_names(own, known, f"{step}: ")
        return keywords
    is_own_objective = ":" in str(keywords.get("objective"))
    slips = () if is_own_objective else [n for n in own if suggest_known(n, sorted(known), _LIKE_A_SLIP)]
    check_names(slips, known, f"{step}: ")
    if not own:
        return keywords
    named = {name: value for name, value in keywords.items() if name in known}
    return named | {OWN_SETTINGS: {**(named.get(OWN_SETTINGS) or {}), **own}}


def _list_help(kind: Any) -> str:
    """Return a line ``name: help`` for each field that has help."""
    items = {item.name: item.metadata["help"] for item in fields(kind) if "help" in item.metadata}
    return "\n".join(f"{name}: {' '.join(help.split())}" for name, help in items.items())
