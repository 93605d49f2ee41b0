"""Statistics of a dataset, and the HTML page that shows them with charts and tables."""
