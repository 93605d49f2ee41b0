"""Evaluates the arithmetic of ``#expr`` with limits. WikiExtractor passes this text to Python's ``eval``.

Supported are numbers, arithmetic, comparisons, ``and``, ``or``, ``not``, conditional expressions, tuples, and
the names below. Everything else that Python would evaluate (strings, attributes, other names) is an error. It
is also an error if a number has more than MAX_BITS bits, a text is longer than MAX_TEXT, or the expression is
nested more deeply than MAX_NESTING.
"""

import ast
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

MAX_TEXT = 1000
MAX_BITS = 100_000
MAX_NESTING = 100
MAX_DIGITS = 400


class ExpressionError(Exception):
    """Error: a text is not an arithmetic expression, or exceeds a limit."""


def _round(number: Any, digits: Any = None) -> Any:
    """Round a number like Python's ``round``. Raises ExpressionError for too many digits."""
    if digits is not None and abs(digits) > MAX_DIGITS:
        raise ExpressionError("too many digits")
    return round(number, digits)


_CONSTANTS = {"pi": math.pi, "e": math.e}
_CALLS: dict[str, Callable[..., Any]] = {
    **{call.__name__: call for call in (abs, bool, divmod, float, int, len, max, min, sum)},
    "round": _round,
    "trunc": math.trunc,
}
_UNARY: dict[type, Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}
_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_COMPARISONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}


def evaluate(text: str) -> str:
    """Evaluate an arithmetic expression, and return its value as text.

    Raises ExpressionError if the text is not an expression or exceeds a limit.
    """
    if len(text) > MAX_TEXT:
        raise ExpressionError("too long")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.lstrip(" \t"), mode="eval")
        return str(_evaluate_node(tree.body, 0))
    except (SyntaxError, ValueError, TypeError, ArithmeticError, MemoryError, RecursionError) as error:
        raise ExpressionError(str(error)) from None


def _evaluate_node(node: ast.expr, nesting: int) -> Any:
    """Return the value of a node in the syntax tree of an expression.

    nesting: number of nodes around this node.
    """
    if nesting > MAX_NESTING:
        raise ExpressionError("nested too deep")
    match node:
        case ast.Constant(value=bool() | int() | float() | complex() | None as value):
            return value
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.Tuple(elts=elements):
            return tuple(_evaluate_node(element, nesting + 1) for element in elements)
        case ast.UnaryOp(op=op, operand=operand):
            return _UNARY[type(op)](_evaluate_node(operand, nesting + 1))
        case ast.BinOp():
            return _evaluate_chain(node, nesting)
        case ast.BoolOp(op=op, values=values):
            return _evaluate_boolean(isinstance(op, ast.And), values, nesting)
        case ast.Compare(left=left, ops=ops, comparators=others):
            return _evaluate_comparison(left, ops, others, nesting)
        case ast.IfExp(test=test, body=body, orelse=other):
            return _evaluate_node(body if _evaluate_node(test, nesting + 1) else other, nesting + 1)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _CALLS:
            return _CALLS[name](*[_evaluate_node(argument, nesting + 1) for argument in args])
    raise ExpressionError(f"no arithmetic: {type(node).__name__}")


def _evaluate_chain(node: ast.expr, nesting: int) -> Any:
    """Return the value of a sum or product of many terms.

    It is computed from left to right without recursion.
    """
    # Python parses "1 - 2 + 3" as ((1 - 2) + 3), so the tree is nested on the left side. Go down along the
    # left operands, and then compute from the innermost operation outwards.
    operations: list[tuple[ast.operator, ast.expr]] = []
    while isinstance(node, ast.BinOp):
        operations.append((node.op, node.right))
        node = node.left
    value = _evaluate_node(node, nesting + 1)
    for op, right in reversed(operations):
        value = _apply_operator(op, value, _evaluate_node(right, nesting + 1))
    return value


def _apply_operator(op: ast.operator, left: Any, right: Any) -> Any:
    """Return the value of an operation with two operands. Raises ExpressionError if it is not allowed."""
    if type(op) not in _BINARY:
        raise ExpressionError("no arithmetic")
    if isinstance(left, int) and isinstance(right, int):
        _check_result_size(op, left, right)
    elif isinstance(left, tuple) != isinstance(right, tuple):
        raise ExpressionError("arithmetic with a tuple")
    return _BINARY[type(op)](left, right)


def _check_result_size(op: ast.operator, left: int, right: int) -> None:
    """Raise ExpressionError if the result of an operation on integers might have more than MAX_BITS bits."""
    if isinstance(op, ast.Pow):
        bits = left.bit_length() * right if abs(left) > 1 else 1
    elif isinstance(op, ast.LShift):
        bits = left.bit_length() + right
    else:
        bits = left.bit_length() + right.bit_length()
    if bits > MAX_BITS:
        raise ExpressionError("too large a number")


def _evaluate_boolean(wanted: bool, values: list[ast.expr], nesting: int) -> Any:
    """Return the value of an ``and`` or an ``or``.

    As in Python, values after the value that decides are not evaluated.

    wanted: True for ``and``, False for ``or``.
    """
    value: Any = wanted
    for node in values:
        value = _evaluate_node(node, nesting + 1)
        if bool(value) is not wanted:
            break
    return value


def _evaluate_comparison(left: ast.expr, ops: list[ast.cmpop], others: list[ast.expr], nesting: int) -> Any:
    """Return the value of a comparison with one or more operators, such as ``1 < 2 < 3``."""
    value = _evaluate_node(left, nesting + 1)
    result: Any = True
    for op, node in zip(ops, others, strict=True):
        if type(op) not in _COMPARISONS:
            raise ExpressionError("no comparison of values")
        other = _evaluate_node(node, nesting + 1)
        result = _COMPARISONS[type(op)](value, other)
        if not result:
            break
        value = other
    return result
