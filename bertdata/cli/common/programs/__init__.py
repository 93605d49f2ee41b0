"""Command lines of other projects' programs, for ``bertdata like`` and ``python -m trainer like``.

These two commands run the command line of another program, such as a published pre-training script.
``like_command.py`` describes one of the two commands. ``program.py`` describes another program, and
``flag.py`` one of its flags. ``program_file.py`` reads the TOML file of a program. ``command_line.py`` reads
a command line by the rules of the program's own parser. ``choice.py`` finds the program that the user names.
"""
