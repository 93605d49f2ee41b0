"""Code that several commands share, such as the argument parser, groups of flags and the progress display."""
