"""Makes the copy button of a console block on the site copy only the commands, without prompts and output."""

import html
import re

BLOCK = re.compile(r'<div class="highlight"><pre>(?P<code>.*?)</pre></div>', re.DOTALL)
OUTPUT = re.compile(r'<span class="go">.*?</span>\n?', re.DOTALL)
PROMPT = re.compile(r'<span class="gp">\$ </span>')


def add_commands_to_copy(page: str) -> str:
    """Add the text to copy to each console block of a page.

    It is put into the attribute ``data-copy``, which the site's theme mkdocs-material copies.

    page: the page's HTML.
    """
    return BLOCK.sub(_mark_block, page)


def _mark_block(block: re.Match[str]) -> str:
    """Return a console block with its commands in the attribute ``data-copy``."""
    if not PROMPT.search(block["code"]):
        return block[0]  # A block without prompts is copied as it is.
    commands = html.escape(find_commands(block["code"]))
    return f'<div class="highlight" data-copy="{commands}"><pre>{block["code"]}</pre></div>'


def find_commands(code: str) -> str:
    """Return the commands in a console block.

    code: the block's HTML, in which the parts are highlighted.
    """
    without_output = PROMPT.sub("", OUTPUT.sub("", code))
    return html.unescape(re.sub(r"<[^>]+>", "", without_output)).strip()
