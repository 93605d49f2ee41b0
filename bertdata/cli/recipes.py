"""``bertdata recipes``: list the recipes (settings of published data sets), or print the settings of a
recipe.
"""

import json

from bertdata.build.recipe_toml import format_recipe
from bertdata.cli.common.parser import Parser
from bertdata.config.recipes import RECIPES, find_recipe
from bertdata.examples.objectives import find_objective
from bertdata.io.terminal import say, say_text

EXAMPLE = """\
  bertdata recipes
  bertdata recipes nvidia
  bertdata recipes nvidia --as toml > dataset.toml"""


def make_parser() -> Parser:
    """Return the parser of ``bertdata recipes``."""
    parser = Parser(
        "bertdata recipes",
        EXAMPLE,
        "Lists the recipes, or prints all settings of one recipe: as JSON, or as the TOML file that\n"
        "bertdata create --config and bertdata segment --config read.",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="recipe whose settings to print")
    parser.add_argument(
        "--as", dest="form", choices=("json", "toml"), default="json", help="format to print (default: json)"
    )
    return parser


def run(arguments: list[str]) -> int:
    """Run ``bertdata recipes`` and return the exit status."""
    args = make_parser().parse_args(arguments)
    if args.name is None:
        for recipe in RECIPES.values():
            say(f"{recipe.name:<10} {recipe.summary}")
        return 0
    recipe = find_recipe(args.name)
    if args.form == "toml":
        say_text(format_recipe(recipe))
        return 0
    settings_type = find_objective(recipe.objective).settings_type
    value = {
        "name": recipe.name,
        "summary": recipe.summary,
        **recipe.fidelity,
        "phases": [settings_type(**phase).as_json() for phase in recipe.phases],
    }
    say_text(json.dumps(value, indent=1))
    return 0
