"""Apache Beam pipelines that run bertdata's steps on any runner."""
