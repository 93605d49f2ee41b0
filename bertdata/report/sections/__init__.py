"""The sections of a dataset's page. Each has one function: datasets' numbers to a section, or None."""
