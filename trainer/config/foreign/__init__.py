"""Other programs' names for the configuration's keys: a table for each program, and its translation."""
