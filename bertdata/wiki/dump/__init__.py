"""Reads a dump: decompresses its file, cuts the text into blocks of whole pages, and parses the site's
description.
"""
