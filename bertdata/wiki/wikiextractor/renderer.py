"""Calls the optional package wikiextractor in this process, with a fixed date instead of the current date.

The package has the licence AGPL, and belongs to the optional extra ``wiki``. It is used through its interface
like its own command uses it. The only change is that its arithmetic has limits.
"""

import io
import logging
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from bertdata.errors import MissingExtraError, install_extra
from bertdata.wiki.dump.site import SiteInfo
from bertdata.wiki.wikiextractor.arithmetic import limit_arithmetic
from bertdata.wiki.wikiextractor.pages import Page

VERSION = "3.1.0"
"""Version of the package whose output is reproduced. Other versions may give different articles."""


@lru_cache(maxsize=1)
def load_wikiextractor() -> SimpleNamespace:
    """Import the package wikiextractor, and return its classes and functions that are used here.

    Raises MissingExtraError if the package is not installed, or if another version is installed.
    """
    remedy = f"install wikiextractor {VERSION}: {install_extra('wiki')}"
    try:
        from wikiextractor import WikiExtractor, extract, template_blob
    except ImportError as error:
        raise MissingExtraError(f"extraction needs the package wikiextractor ({error}); {remedy}") from None
    if WikiExtractor.__version__ != VERSION:
        raise MissingExtraError(f"wikiextractor {WikiExtractor.__version__} is installed; {remedy}")
    # The command of the package adds a handler for its log. If there were no handler at all, Python would
    # print warnings of the package.
    logging.getLogger("wikiextractor").addHandler(logging.NullHandler())
    limit_arithmetic(extract)
    return SimpleNamespace(
        Extractor=extract.Extractor,
        ignored_tags=[extract.ignoreTag(tag) for tag in (*extract.ignoredTags, "a")],
        parsed_templates=(extract.Extractor._parse_template, extract.TemplateArg._parse_template),
        resolve_template_page=extract.resolve_template_page,
        CompactedTemplates=template_blob.CompactedTemplates,
        StreamingTemplateBlobBuilder=template_blob.StreamingTemplateBlobBuilder,
    )


def forget_parsed_templates() -> None:
    """Empty the package's caches of parsed templates.

    Their content influences how deeply a page may be nested.
    """
    for parse in load_wikiextractor().parsed_templates:
        parse.cache_clear()


class FrozenClock:
    """Object that replaces the package's table of magic words.

    In this table, the date is always midnight of the same day.

    For each article, the package first sets ``{{CURRENTDAY}}`` and similar words to the current date. This
    class ignores these assignments, and passes all others on.
    """

    def __init__(self, magic_words: Any, day: date) -> None:
        self._words = magic_words
        self._frozen = {
            "currentyear": day.strftime("%Y"),
            "currentmonth": day.strftime("%m"),
            "currentday": day.strftime("%d"),
            "currenthour": "00",
            "currenttime": "00:00:00",
        }
        self._words.values.update(self._frozen)

    @property
    def values(self) -> dict[str, str]:
        """Value of each magic word. wikiextractor uses it to find out which words exist."""
        values: dict[str, str] = self._words.values
        return values

    def __getitem__(self, name: str) -> str | None:
        value: str | None = self._words[name]
        return value

    def __setitem__(self, name: str, value: str) -> None:
        if name not in self._frozen:
            self._words[name] = value


@dataclass(kw_only=True)
class Renderer:
    """Object that renders articles in the same way as wikiextractor's command with its default options.

    day: day that replaces ``{{CURRENTDAY}}`` and similar words.
    templates: text of each template by title, in the package's format, or None if templates are not expanded.
    redirects: target of each redirect by title, in the package's format, or None if templates are not
        expanded.
    """

    site: SiteInfo
    day: date
    templates: Any = None
    redirects: Any = None

    def render(self, page: Page) -> bytes:
        """Render the article of a page, from ``<doc ...>`` to ``</doc>``, in UTF-8.

        Exceptions that wikiextractor raises are not caught.
        """
        module = load_wikiextractor()
        extractor = module.Extractor(
            page.page_id,
            "",  # the id of the revision, which is used only in JSON output
            self.site.url_base,
            page.title,
            [page.text],
            templates=self.templates,
            redirects=self.redirects,
            templatePrefix=f"{self.site.template_namespace}:",
            knownNamespaces=frozenset(name for name, _ in self.site.namespaces),
            ignored_tag_patterns=module.ignored_tags,
        )
        # extract() sets the date from the current time, so replace the magic words before.
        extractor.magicWords = FrozenClock(extractor.magicWords, self.day)
        article = io.StringIO()
        extractor.extract(article, html_safe=True)
        return article.getvalue().encode()
