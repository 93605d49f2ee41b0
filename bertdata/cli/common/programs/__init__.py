"""Command lines of other programs, for ``bertdata like`` and ``python -m trainer like``.

``door.py`` describes one of these two commands. ``program.py`` describes another program, and ``flag.py`` a
flag of such a program. ``program_file.py`` reads a program's TOML file, ``command_line.py`` reads a command
line by the rules of the program's own parser, and ``choice.py`` finds the program that the user names.
"""
