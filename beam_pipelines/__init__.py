"""Apache Beam pipelines that string bertdata's steps together for any runner."""
