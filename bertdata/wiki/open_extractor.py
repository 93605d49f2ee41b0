"""Chooses the extractor for a program ("3.1.0" or "mlperf") and an engine (C++ kernel or Python)."""

import datetime
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from bertdata._native import Engine, default_engine, kernels, use_native
from bertdata.wiki.extractor import (
    BlockArticles,
    BlockDefinitions,
    BlockState,
    Extractor,
    ExtractorSettings,
    PageOutcome,
)
from bertdata.wiki.page_rules import MAX_WORK
from bertdata.wiki.settings import ExtractorName
from bertdata.wiki.template_file import map_file


def check_engine(extractor: ExtractorName, engine: Engine | None) -> Engine:
    """Return the engine to use: the given engine, or the default engine if it is None.

    Raises MissingExtraError if the engine needs the package wikiextractor, and the package is not installed.
    """
    engine = engine or default_engine()
    if not use_native(engine) and extractor == "3.1.0":
        from bertdata.wiki.wikiextractor.renderer import load_wikiextractor

        load_wikiextractor()
    return engine


@lru_cache(maxsize=2)
def open_extractor(settings: ExtractorSettings) -> Extractor:
    """Return the extractor for these settings. It is cached, so that a worker makes it only once."""
    if use_native(settings.engine):
        return _NativeExtractor(settings)
    if settings.extractor == "mlperf":
        from bertdata.wiki.mlperf import MlperfExtractor

        return _NamedTupleExtractor(MlperfExtractor(**_make_kernel_arguments(settings)))
    from bertdata.wiki.wikiextractor.package_extractor import PackageExtractor

    return PackageExtractor(settings)


def forget_extractors() -> None:
    """Drop the cached extractors of this process, and thereby close their template files."""
    open_extractor.cache_clear()


class _NamedTupleExtractor:
    """Wrapper around an extractor that returns plain tuples, such as a kernel.

    The wrapper returns named tuples.
    """

    def __init__(self, extractor: Any) -> None:
        self._extractor = extractor

    def extract(self, data: bytes, state: BlockState, /) -> BlockArticles:
        """Extract the articles of a block of pages."""
        articles, outcomes, first_id, leaving = self._extractor.extract(data, tuple(state))
        named = _make_outcomes(outcomes)
        return BlockArticles(articles, named, first_id, BlockState(*leaving))

    def definitions(self, data: bytes, state: BlockState, /) -> BlockDefinitions:
        """Collect the template definitions in a block of pages."""
        found, pages, left_out, first_id, leaving = self._extractor.definitions(data, tuple(state))
        return BlockDefinitions(found, pages, left_out, first_id, BlockState(*leaving))


def _make_outcomes(outcomes: Iterable[tuple[Any, ...]]) -> list[PageOutcome]:
    """Convert plain tuples to page outcomes."""
    # This is implemented in C and therefore fast. While Python code runs, the threads of the kernels must
    # wait.
    new = tuple.__new__
    return [new(PageOutcome, outcome) for outcome in outcomes]


class _NativeExtractor(_NamedTupleExtractor):
    """Extractor that calls a C++ kernel. Several threads may share an instance."""

    def __init__(self, settings: ExtractorSettings) -> None:
        arguments = _make_kernel_arguments(settings)
        if settings.extractor == "mlperf":
            super().__init__(kernels.MlperfExtractor(compute=_compute, **arguments))
        else:
            super().__init__(kernels.Wikiextractor(**arguments))


def _compute(function: str, arguments: list[str]) -> str:
    """Return the value of an arithmetic or regular expression in wikitext.

    The C++ kernel calls this function.
    """
    from bertdata.wiki.mlperf.compute import compute

    return compute(function, arguments)


def _make_kernel_arguments(settings: ExtractorSettings) -> dict[str, Any]:
    """Return the arguments with which both kernels are made."""
    site = settings.site
    return {
        "url_base": site.url_base,
        "namespaces": list(site.namespaces),
        "template_namespace": site.template_namespace,
        "module_namespace": site.module_namespace,
        "day": (settings.day or datetime.date(1, 1, 1)).isoformat(),
        "templates": None if settings.templates is None else map_file(settings.templates),
        "skip_pages": list(settings.rules.skip_pages),
        "max_page_bytes": settings.max_page_bytes,
        "max_work": MAX_WORK,
    }
