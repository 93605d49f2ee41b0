"""The Beam stages (transforms with a label) that the pipelines consist of."""
