"""Python implementation of Punkt, the sentence splitter. It is the specification of the C++ kernel."""
