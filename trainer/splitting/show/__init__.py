"""The command that prints, draws and saves plans of split models."""
