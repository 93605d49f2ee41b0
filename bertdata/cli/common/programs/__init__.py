"""Command lines of other programs, as ``bertdata like`` and ``python -m trainer like`` read them.

``door.py`` is one of the two commands, ``program.py`` a program, ``flag.py`` one of its flags.
``program_file.py`` reads a program's TOML file, ``command_line.py`` a command line as the
program does, and ``choice.py`` finds the program that a person names.
"""
