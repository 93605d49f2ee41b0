"""Statistics of a dataset and the HTML page about it: counts, charts, sections."""
