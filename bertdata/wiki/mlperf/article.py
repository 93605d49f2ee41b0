"""Turn wikitext into the lines of an article, with the original's steps in its order."""

import re

from bertdata.wiki.mlperf.brackets import cut_enclosed, make_literal_search
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


_STEPS = 8
"""Number of steps before cleaning that the work budget charges for, without the steps for elements."""


def render_lines(text: str, expander: Expander, work: Work) -> list[str]:
    """Return the lines of the article's body.

    text: wikitext, escaped as in the dump's XML.
    """
    return keep_lines(_clean(_strip_markup(expander.transform(text), work), work))


def _strip_markup(text: str, work: Work) -> str:
    """Apply the steps that work on escaped text.

    No tag is visible yet, and the only ``"`` are those that these steps insert.
    """
    # Calls and tables that are still there are removed. Then follow quotes and links, in the original's
    # order.
    work.spend(_STEPS * count_bytes(text))
    for opener, closer in (("{{", "}}"), ("{|", "|}")):
        text = cut_enclosed(text, make_literal_search(text, opener), make_literal_search(text, closer))
    for step in (replace_quotes, replace_links, replace_external_links):
        text = step(text)
    return _SWITCH.sub("", text)


def _clean(text: str, work: Work) -> str:
    """Unescape the text and apply the steps that work on tags."""
    for step in (unescape_article, drop_tags):
        text = step(text)
    text = unescape(drop_elements(text, work))
    for tag, placeholder in (("math", "formula"), ("code", "codice")):
        text = number_elements(text, tag, placeholder, work)
    return tidy_typography(text)


def format_article(page_id: str, title: str, lines: list[str], url_base: str) -> str:
    """Return the article as it is written.

    Id and title stay escaped as in the dump. The body is plain text.
    """
    begin = f'<doc id="{page_id}" url="{url_base}?curid={page_id}" title="{title}">\n{title}\n\n'
    return begin + "".join(f"{line}\n" for line in lines) + "\n</doc>\n"
