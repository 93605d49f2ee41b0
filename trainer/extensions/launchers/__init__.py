"""Launchers other than torchrun and horovodrun."""
