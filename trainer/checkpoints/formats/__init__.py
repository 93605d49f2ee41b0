"""Other programs' checkpoint formats, a module each."""
