"""Call the optional package wikiextractor in process, with a frozen clock.

The package is licensed under the AGPL and is the optional extra ``wiki``. It is used through its interface,
as its own command does, and unchanged except for limits on its arithmetic.
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
from bertdata.wiki.wikiextractor.arithmetic import bound_arithmetic
from bertdata.wiki.wikiextractor.pages import Page

VERSION = "3.1.0"
"""Version whose output is reproduced. Other versions may render differently."""


@lru_cache(maxsize=1)
def load_wikiextractor() -> SimpleNamespace:
    """Import the package wikiextractor, and return the classes and functions that are used.

    Raises MissingExtraError if the package is missing or has another version.
    """
    remedy = f"install wikiextractor {VERSION}: {install_extra('wiki')}"
    try:
        from wikiextractor import WikiExtractor, extract, template_blob
    except ImportError as error:
        raise MissingExtraError(f"extraction needs the package wikiextractor ({error}); {remedy}") from None
    if WikiExtractor.__version__ != VERSION:
        raise MissingExtraError(f"wikiextractor {WikiExtractor.__version__} is installed; {remedy}")
    # The package's command installs a log handler. Without any handler, Python would print its warnings.
    logging.getLogger("wikiextractor").addHandler(logging.NullHandler())
    bound_arithmetic(extract)
    return SimpleNamespace(
        Extractor=extract.Extractor,
        ignored_tags=[extract.ignoreTag(tag) for tag in (*extract.ignoredTags, "a")],
        parsed_templates=(extract.Extractor._parse_template, extract.TemplateArg._parse_template),
        resolve_template_page=extract.resolve_template_page,
        CompactedTemplates=template_blob.CompactedTemplates,
        StreamingTemplateBlobBuilder=template_blob.StreamingTemplateBlobBuilder,
    )


def forget_parsed_templates() -> None:
    """Empty the package's caches of parsed templates, which change how deep a page may be nested."""
    for parse in load_wikiextractor().parsed_templates:
        parse.cache_clear()


class FrozenClock:
    """Replacement of the package's magic words in which the date is fixed: midnight of the day.

    An extractor sets ``{{CURRENTDAY}}`` and similar words from the machine's clock at the start of each
    article. This class ignores these assignments and passes all others on.
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
        """All words and their values. wikiextractor uses it to look up which words exist."""
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
    """Renderer of articles that gives the same output as wikiextractor's command with default options.

    day: day that ``{{CURRENTDAY}}`` and similar words expand to.
    templates, redirects: mappings by title in the package's format, or None to expand no templates.
    """

    site: SiteInfo
    day: date
    templates: Any = None
    redirects: Any = None

    def render(self, page: Page) -> bytes:
        """Render a page into an article, from ``<doc ...>`` to ``</doc>``, in UTF-8.

        Exceptions raised by wikiextractor are not caught.
        """
        module = load_wikiextractor()
        extractor = module.Extractor(
            page.page_id,
            "",  # revision id, used only in JSON output
            self.site.url_base,
            page.title,
            [page.text],
            templates=self.templates,
            redirects=self.redirects,
            templatePrefix=f"{self.site.template_namespace}:",
            knownNamespaces=frozenset(name for name, _ in self.site.namespaces),
            ignored_tag_patterns=module.ignored_tags,
        )
        # extract() sets the magic words from the clock, so they must be frozen before.
        extractor.magicWords = FrozenClock(extractor.magicWords, self.day)
        article = io.StringIO()
        extractor.extract(article, html_safe=True)
        return article.getvalue().encode()
