"""The trainer can be read in one sitting."""

import ast
import io
import tokenize

from tests.support.paths import ROOT

TRAINER = ROOT / "trainer"
LIMIT = 2500
ADAPTERS = ("devices/", "collectives/")
ADAPTER_LIMIT = 200
NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}


def code_lines(source: str) -> int:
    """Lines that hold code: neither blank nor only a comment, nor within a docstring.

    A docstring is any statement that is only a string, as those below attributes are.
    """
    strings = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in strings:
        lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def test_only_lines_with_code_are_counted():
    prose = '"""A docstring\n\nof three lines."""\n\n# a comment\n'
    code = 'x = (\n    1,  # another\n)\n"""Of x."""\ny = """a\nb"""\n'
    assert code_lines(prose) == 0
    source = prose + code
    assert code_lines(source) == 5


def test_the_trainer_stays_under_its_limit():
    """Lines of Python code in trainer/; its configurations, which are JSON, are not counted.

    The adapters of devices and launchers have a limit each: a reader needs one of them, not all.
    """
    found = {
        str(path.relative_to(TRAINER)): code_lines(path.read_text("utf-8")) for path in TRAINER.rglob("*.py")
    }
    adapters = {name: lines for name, lines in found.items() if name.startswith(ADAPTERS)}
    assert sum(found.values()) - sum(adapters.values()) < LIMIT, found
    assert len(adapters) > 10
    assert all(lines < ADAPTER_LIMIT for lines in adapters.values()), adapters
