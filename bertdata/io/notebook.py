"""A progress bar in a notebook, below the cell that runs."""

import sys
import time
from html import escape
from typing import Any

_LEAST_SECONDS = 0.1
"""Shortest time between two drawings of a bar, because each is sent to the browser."""

_KERNEL_SHELL = "ZMQInteractiveShell"
"""Class of the shell in the kernel of Jupyter, of Colab and of editors. IPython on a terminal has another."""


def is_in_notebook() -> bool:
    """Return True if this program is the kernel of a notebook, so that a cell can show a bar."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == _KERNEL_SHELL


class NotebookBar:
    """A bar with a text next to it and lines below it, drawn in the output of the notebook's cell.

    The notebook shows HTML. Where HTML cannot be shown, the bar is a line of text.
    """

    def __init__(self) -> None:
        from IPython.display import display

        self._lines: list[str] = []
        self._share: float | None = None
        self._text = ""
        self._drawn = time.monotonic()
        self._handle: Any = display(self._content(), raw=True, display_id=True)

    def show(self, share: float | None, text: str, *, at_once: bool = False) -> None:
        """Show how much is done.

        share: the part that is done, from 0 to 1. None: a text without a bar.
        text: what stands next to the bar.
        at_once: draw now, although the bar was drawn a moment ago.
        """
        self._share, self._text = share, text
        if at_once or time.monotonic() - self._drawn >= _LEAST_SECONDS:
            self._draw()

    def add_line(self, line: str) -> None:
        """Add a line below the bar, which stays there."""
        self._lines.append(line)
        self._draw()

    def _draw(self) -> None:
        """Send the present state to the notebook."""
        self._drawn = time.monotonic()
        self._handle.update(self._content(), raw=True)

    def _content(self) -> dict[str, str]:
        """Return the bar as HTML and as text, by MIME type."""
        bar = "" if self._share is None else f'<progress max="1" value="{self._share:.4f}"></progress> '
        lines = "".join(f"<div>{escape(line)}</div>" for line in self._lines)
        percent = "" if self._share is None else f"{self._share:.0%} "
        return {
            "text/html": f"<div>{bar}{escape(self._text)}</div>{lines}",
            "text/plain": "\n".join([f"{percent}{self._text}", *self._lines]),
        }
