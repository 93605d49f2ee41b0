"""A step's function, called with the keywords of its request.

A request is a frozen dataclass with everything that a caller may ask of a step: each keyword is one of its
fields, declared once, with type, default and help. The command line, Python and Beam fill the same request.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ParamSpec, TypeVar

from bertdata._native import Engine
from bertdata.config.declared import setting
from bertdata.steps.progress import OnProgress
from bertdata.steps.values import check_engine, path_of, paths_of, workers_of

Keywords = ParamSpec("Keywords")
Request = TypeVar("Request")
Result = TypeVar("Result")

OWN_SETTINGS = "own_settings"
"""The field that holds the keywords which are no fields, of a request that has one."""


OBJECTIVE_HELP = """\
training objective of the examples (default: read from their manifest or fields). Your own objective must be
named here, because no file may choose code to import"""
"""Of examples that are there already."""

PUNKT_TABLES_HELP = """\
directory of NLTK's punkt_tab tables for the language, checked by md5 (default: each worker finds or downloads
them, as bertdata fetch punkt does)"""


@dataclass(frozen=True, kw_only=True)
class GivenProcesses:
    """How a step runs, which changes no byte of what is made."""

    workers: int | None = setting(None, "processes to use; None: one per core")
    progress: OnProgress | None = field(
        default=None,
        compare=False,
        metadata={"help": "function that is called now and then with a StepProgress, what is done so far"},
    )

    def __post_init__(self) -> None:
        workers_of(self.workers)


@dataclass(frozen=True, kw_only=True)
class GivenRun(GivenProcesses):
    """How a step with kernels runs."""

    engine: Engine | None = setting(
        None,
        "native: the C++ kernels (None: native if they are built); python: the slow, readable reference code",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_engine(self.engine)


def given_of(request: Any, group: type[Any]) -> dict[str, Any]:
    """Return the values of a request that are not None, by name, of the fields that ``group`` declares."""
    values = {item.name: getattr(request, item.name) for item in fields(group)}
    return {name: value for name, value in values.items() if value is not None}


def as_texts(request: Any, *, paths: tuple[str, ...] = (), lists: tuple[str, ...] = ()) -> None:
    """Make texts of a new request's paths, and of its lists of paths. None stays. For its ``__post_init__``.

    SettingsError for what is no path.
    """
    for names, as_text in ((lists, paths_of), (paths, path_of)):
        for name in names:
            value = getattr(request, name)
            if value is not None:
                object.__setattr__(request, name, as_text(value))


def keywords_of(
    kind: Callable[Keywords, Request],
) -> Callable[[Callable[[Request], Result]], Callable[Keywords, Result]]:
    """Make of a function of a request one that is called with the request's own arguments.

    Editors, type checkers and ``help`` see the arguments of ``kind``, a dataclass: names, types, defaults.
    The help of each field is added to the function's docstring.
    """

    def decorate(step: Callable[[Request], Result]) -> Callable[Keywords, Result]:
        @functools.wraps(step)
        def call(*places: Keywords.args, **keywords: Keywords.kwargs) -> Result:
            return step(kind(*places, **_with_own_settings(kind, keywords)))

        signature = inspect.signature(kind)
        result = inspect.signature(step).return_annotation
        call.__signature__ = signature.replace(return_annotation=result)  # type: ignore[attr-defined]
        call.__doc__ = f"{inspect.getdoc(step)}\n\n{_told(kind)}"
        return call

    return decorate


def _with_own_settings(kind: Any, keywords: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords, those that are no fields within ``own_settings`` where the request has that."""
    known = {item.name for item in fields(kind)}
    own = {name: value for name, value in keywords.items() if name not in known}
    if not own or OWN_SETTINGS not in known:
        return keywords
    named = {name: value for name, value in keywords.items() if name in known}
    return named | {OWN_SETTINGS: {**(named.get(OWN_SETTINGS) or {}), **own}}


def _told(kind: Any) -> str:
    """Return the help of each field that has one, a line each."""
    items = {item.name: item.metadata["help"] for item in fields(kind) if "help" in item.metadata}
    return "\n".join(f"{name}: {' '.join(help.split())}" for name, help in items.items())
