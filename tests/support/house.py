"""Analysis of the source text: modules, their imports, and their rooms (parts of a package).

Nothing is imported, so a test can plant a fault by changing a copy of the source text.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

Sources = Mapping[str, str]
"""The source text of each module, by its dotted name; a package's is that of its ``__init__``."""

Arrows = Mapping[str, set[str]]
"""For each module, the modules of this project that it imports."""

DIVIDED = ("bertdata", "trainer")
"""The packages in which each folder and module is a separate room."""

ORDER = (
    *("tests", "tools", "benchmarks", "golden", "beam_pipelines"),
    *(
        "trainer",
        "trainer.by_path",
        "trainer.__main__",
        "trainer.program",
        "trainer.functions",
        "trainer.commands",
        "trainer.run",
        "trainer.report",
    ),
    *("trainer.splitting", "trainer.programs", "trainer.checkpoints", "trainer.update", "trainer.workers"),
    *("trainer.devices", "trainer.logs", "trainer.tasks", "trainer.model", "trainer.data"),
    *("trainer.remote", "trainer.config", "trainer.plugins", "trainer.errors"),
    *("bertdata.__main__", "bertdata.cli", "bertdata", "bertdata.steps", "bertdata.reports"),
    *(
        "bertdata.trust",
        "bertdata.build",
        "bertdata.loaders",
        "bertdata.packing",
        "bertdata.lineages",
        "bertdata.dataset",
        "bertdata.shards",
        "bertdata.examples",
    ),
    *(
        "bertdata.tokens",
        "bertdata.text",
        "bertdata.sources",
        "bertdata.wiki",
        "bertdata.config",
        "bertdata.io",
    ),
    *("bertdata._native", "bertdata.unicode", "bertdata.records", "bertdata.errors", "schemas"),
)
"""The rooms, top first: a module imports modules of its own room and of rooms further down."""


def packages(root: Path) -> list[str]:
    """Return the folders directly below ``root`` that hold Python files."""
    return sorted(path.name for path in root.iterdir() if path.is_dir() and any(path.glob("*.py")))


def read_sources(root: Path) -> Sources:
    """Return the source text of all modules of all packages below ``root``."""
    sources = {}
    for package in packages(root):
        for path in sorted((root / package).rglob("*.py")):
            name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
            sources[name] = path.read_text(encoding="utf-8")
    return sources


def draw(sources: Sources) -> Arrows:
    """Return each module's imports within the project, also those in functions and for type checkers."""
    return {module: set(_imports(module, source, sources)) for module, source in sources.items()}


def _imports(module: str, source: str, sources: Sources) -> Iterator[str]:
    for name in _imported_names(source):
        found = _nearest(name, sources)
        if found and found != module:
            yield found


def draw_plugins(sources: Sources, table: Mapping[str, Mapping[str, str]]) -> Arrows:
    """Return the imports, and an arrow from each module that looks up plug-ins to these plug-ins.

    A module looks up plug-ins if it calls ``find`` of trainer.plugins with a literal first argument.
    """
    arrows = draw(sources)
    for module, source in sources.items():
        if module.startswith("trainer."):
            for kind in kinds_found(source):
                arrows[module] |= {target.partition(":")[0] for target in table[kind].values()} - {module}
    return arrows


def kinds_found(source: str) -> Iterator[str]:
    """Yield the first argument of each call ``find("kind", ...)``."""
    for call in plugin_calls(source):
        if isinstance(call.args[0], ast.Constant):
            yield str(call.args[0].value)


def plugin_calls(source: str) -> Iterator[ast.Call]:
    """Yield each call of ``plugins.find``, or of a function ``find`` with two arguments."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or len(node.args) != 2:
            continue
        if ast.unparse(node.func) in ("find", "plugins.find"):
            yield node


@cache
def _imported_names(source: str) -> list[str]:
    """Return dotted names: a.b for ``import a.b``, a.b.c for ``from a.b import c``, module or not."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import: {ast.unparse(node)}"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def _nearest(name: str, sources: Sources) -> str | None:
    """Return the longest beginning of the name that is a module of this project, or None."""
    while name and name not in sources:
        name = name.rpartition(".")[0]
    return name or None


def room(module: str) -> str:
    """Return the module's room: a direct child of a package in DIVIDED, else the top-level package."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] in DIVIDED else parts[0]


def upward(arrows: Arrows, order: Sequence[str]) -> list[str]:
    """Return each import of a room that is not below the importing room. order: rooms from top to bottom."""
    height = {name: number for number, name in enumerate(order)}
    return [
        f"{module} imports {imported}"
        for module, found in sorted(arrows.items())
        for imported in sorted(found)
        if room(module) != room(imported) and height[room(imported)] <= height[room(module)]
    ]


def circles(arrows: Arrows) -> list[list[str]]:
    """Return the sets of modules that import each other, directly or through others, in alphabetical order.

    This is Tarjan's algorithm without recursion. A component is complete when the walk leaves its first
    module.
    """
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[list[str]] = []
    walk: list[tuple[str, Iterator[str]]] = []

    def enter(module: str) -> None:
        number[module] = lowest[module] = len(number)
        stack.append(module)
        on_stack.add(module)
        walk.append((module, iter(sorted(arrows[module]))))

    for start in arrows:
        if start in number:
            continue
        enter(start)
        while walk:
            module, following = walk[-1]
            for other in following:
                if other not in number:
                    enter(other)
                    break
                if other in on_stack:
                    lowest[module] = min(lowest[module], number[other])
            else:
                walk.pop()
                if walk:
                    lowest[walk[-1][0]] = min(lowest[walk[-1][0]], lowest[module])
                if lowest[module] == number[module]:
                    at = stack.index(module)
                    component = stack[at:]
                    del stack[at:]
                    on_stack.difference_update(component)
                    if len(component) > 1 or module in arrows[module]:
                        found.append(sorted(component))
    return sorted(found)
