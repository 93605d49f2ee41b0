"""Make the site's copy button copy a console block's commands, without prompts and output."""

import html
import re

BLOCK = re.compile(r'<div class="highlight"><pre>(?P<code>.*?)</pre></div>', re.DOTALL)
OUTPUT = re.compile(r'<span class="go">.*?</span>\n?', re.DOTALL)
PROMPT = re.compile(r'<span class="gp">\$ </span>')


def with_commands_to_copy(page: str) -> str:
    """Return the page's HTML with ``data-copy``, which mkdocs-material copies, on each block of a console."""
    return BLOCK.sub(_marked, page)


def _marked(block: re.Match[str]) -> str:
    if not PROMPT.search(block["code"]):
        return block[0]  # a block without prompts is copied as it is
    commands = html.escape(commands_of(block["code"]))
    return f'<div class="highlight" data-copy="{commands}"><pre>{block["code"]}</pre></div>'


def commands_of(code: str) -> str:
    """Return the commands of a highlighted console block."""
    without_output = PROMPT.sub("", OUTPUT.sub("", code))
    return html.unescape(re.sub(r"<[^>]+>", "", without_output)).strip()
