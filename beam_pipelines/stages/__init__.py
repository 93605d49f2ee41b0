"""The stages (Beam transforms and the functions they run) from which the pipelines are built."""
