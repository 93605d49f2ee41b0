"""Output of an extraction: the files of articles, the report, the manifest, and articles rendered for other
days.
"""
