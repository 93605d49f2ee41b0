"""Turns wikitext into the lines of an article, in the same steps as WikiExtractor."""

import re

from bertdata.wiki.mlperf.brackets import make_literal_search, remove_enclosed
from bertdata.wiki.mlperf.entities import unescape, unescape_article
from bertdata.wiki.mlperf.expansion import Expander
from bertdata.wiki.mlperf.external_links import replace_external_links
from bertdata.wiki.mlperf.lines import keep_lines
from bertdata.wiki.mlperf.links import replace_links
from bertdata.wiki.mlperf.quotes import replace_quotes
from bertdata.wiki.mlperf.tags import drop_elements, drop_tags, number_elements
from bertdata.wiki.mlperf.typography import tidy_typography
from bertdata.wiki.mlperf.work import Work, count_bytes

_SWITCH = re.compile(
    "__(?:NOTOC|FORCETOC|TOC|NEWSECTIONLINK|NONEWSECTIONLINK|NOGALLERY|HIDDENCAT|NOCONTENTCONVERT|NOCC"
    "|NOTITLECONVERT|NOTC|START|END|INDEX|NOINDEX|STATICREDIRECT|DISAMBIG)__"
)


_MARKUP_PASSES = 8
"""Number of times that ``_strip_markup`` goes through the text. Each time counts as work on the page.

The work on a page is limited, so that a malicious page cannot take hours.
"""


def render_lines(text: str, expander: Expander, work: Work) -> list[str]:
    """Convert the wikitext of a page to the lines of the article's body.

    text: wikitext, escaped as in the dump's XML.
    expander: expands calls in double braces.
    work: counter of the work on the page.
    """
    return keep_lines(
        _unescape_and_remove_tags(_strip_markup(expander.expand_outside_nowiki(text), work), work)
    )


def _strip_markup(text: str, work: Work) -> str:
    """Remove calls in braces, tables, quotes, links and switches such as ``__TOC__``.

    The text is still escaped, so it contains no tags yet, and the only ``"`` are those that these steps
    insert.
    """
    # As in WikiExtractor, first remove all calls and tables that were not expanded, and then replace quotes
    # and links.
    work.spend(_MARKUP_PASSES * count_bytes(text))
    for opener, closer in (("{{", "}}"), ("{|", "|}")):
        text = remove_enclosed(text, make_literal_search(text, opener), make_literal_search(text, closer))
    for step in (replace_quotes, replace_links, replace_external_links):
        text = step(text)
    return _SWITCH.sub("", text)


def _unescape_and_remove_tags(text: str, work: Work) -> str:
    """Replace character references by their characters, and remove tags and elements such as references.

    Formulas and code become numbered placeholders. At the end, spaces and punctuation are corrected.
    """
    for step in (unescape_article, drop_tags):
        text = step(text)
    text = unescape(drop_elements(text, work))
    for tag, placeholder in (("math", "formula"), ("code", "codice")):
        text = number_elements(text, tag, placeholder, work)
    return tidy_typography(text)


def format_article(page_id: str, title: str, lines: list[str], url_base: str) -> str:
    """Format an article with its title and ``<doc>`` tags, as it is written to a file.

    page_id, title: id and title of the page, escaped as in the dump.
    lines: body of the article, as plain text.
    url_base: start of the URL in the ``<doc>`` tag.
    """
    begin = f'<doc id="{page_id}" url="{url_base}?curid={page_id}" title="{title}">\n{title}\n\n'
    return begin + "".join(f"{line}\n" for line in lines) + "\n</doc>\n"
