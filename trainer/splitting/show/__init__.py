"""The command that prints, draws and keeps plans of divided models."""
