"""Other programs' names for the configuration's keys."""
