"""Code that the commands share: argument parser, choice of the command, flags, progress."""
