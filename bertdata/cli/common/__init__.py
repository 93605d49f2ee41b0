"""Shared by the commands: parser, dispatch, flags, progress."""
