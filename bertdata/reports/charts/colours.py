"""Colours of charts and pages by name, for light and dark backgrounds.

A chart is drawn in the light colours. In a page each colour becomes the CSS variable ``--NAME``.
"""

LIGHT = {
    "ink": "#1b1f24",
    "faint": "#57606a",
    "grid": "#d5dbe1",
    "paper": "#fffffe",
    "series-1": "#2b6199",
    "series-2": "#b0501b",
    "series-3": "#33743c",
    "series-4": "#8b4f9f",
    "series-5": "#7f6600",
    "series-6": "#b02a63",
    "alert": "#b3261e",
    "marked": "#fbeede",
}
DARK = {
    "ink": "#e7eaee",
    "faint": "#a5afba",
    "grid": "#353c45",
    "paper": "#14181d",
    "series-1": "#80b4ea",
    "series-2": "#f0a26f",
    "series-3": "#86cb8c",
    "series-4": "#d0a4e2",
    "series-5": "#dcc264",
    "series-6": "#f48fb1",
    "alert": "#ff938a",
    "marked": "#3a2c20",
}
SERIES = tuple(colour for name, colour in LIGHT.items() if name.startswith("series"))


def series_colour(number: int) -> str:
    """Return the colour of the series with this number. After the last colour, the first is used again."""
    return SERIES[number % len(SERIES)]
