"""The commands of the trainer: each parses its words, calls a room below and prints."""
