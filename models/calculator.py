"""Computes models' arithmetic expressions without using eval."""

import ast
import math
import operator
import warnings
from collections.abc import Callable, Sequence

Number = int | float

MAX_CHARS = 500
# About three thousand digits.
_MAX_BITS = 10_000
# Factorials and binomial coefficients of larger numbers have too many digits.
_LARGEST_FACTORIAL, _LARGEST_CHOICE = 1000, 10_000
_FINEST_ROUNDING = 300

_OPERATORS: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_SIGNS: dict[type[ast.unaryop], Callable[[Number], Number]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_CONSTANTS = {"pi": math.pi, "e": math.e}


class NotCalculable(ValueError):
    pass


def calculate(expression: str) -> str:
    if len(expression) > MAX_CHARS:
        raise NotCalculable(f"the expression is longer than {MAX_CHARS} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about odd Python are not for the user
            tree = ast.parse(expression.strip(), mode="eval")
        value = _value(tree.body)
        # Keep only reliable digits: 0.1 + 0.2 is 0.3.
        return str(value) if isinstance(value, int) else f"{value:.15g}"
    except ZeroDivisionError as error:
        raise NotCalculable("division by zero") from error
    except OverflowError as error:
        raise NotCalculable("the numbers are too large") from error
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise NotCalculable(f"this is no arithmetic expression; {_OFFER}") from error
    except (TypeError, ValueError) as error:
        raise NotCalculable(str(error)) from error


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return _check_size(number)
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _SIGNS:
            return _SIGNS[type(sign)](_value(operand))
        case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
            return _power(_value(base), _value(exponent))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _check_size(_OPERATORS[type(sign)](_value(left), _value(right)))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return _check_size(_FUNCTIONS[name](*map(_value, args)))
    raise NotCalculable(_explain_refusal(node))


def _explain_refusal(node: ast.expr) -> str:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor):
        return "^ means nothing here; write powers as **"
    if isinstance(node, ast.Tuple):
        return "a comma means nothing here; write 1200, not 1,200"
    return f"'{ast.unparse(node)}' means nothing here; {_OFFER}"


def _check_size(value: Number) -> Number:
    if isinstance(value, float) and not math.isfinite(value):
        raise NotCalculable("the result is no finite number")
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        raise NotCalculable("the result has too many digits")
    return value


def _power(base: Number, exponent: Number) -> Number:
    whole = isinstance(base, int) and isinstance(exponent, int) and exponent >= 0
    if whole and abs(base) > 1 and int(base).bit_length() * exponent > _MAX_BITS:
        raise NotCalculable("the result has too many digits")
    result = base**exponent
    if isinstance(result, complex):
        raise NotCalculable("the result is no real number")
    return _check_size(result)


def _check_limit(limit: int, values: Sequence[Number]) -> None:
    if any(abs(value) > limit for value in values):
        raise NotCalculable(f"this works up to {limit:,} only")


def _round(value: Number, *digits: Number) -> Number:
    _check_limit(_FINEST_ROUNDING, digits)
    return round(value, *map(int, digits))


def _for_integers(function: Callable[..., int], limit: int) -> Callable[..., int]:
    def apply(*values: Number) -> int:
        _check_limit(limit, values)
        if any(value != int(value) for value in values):
            raise NotCalculable("whole numbers are needed")
        return function(*map(int, values))

    return apply


_FUNCTIONS: dict[str, Callable[..., Number]] = {
    **{
        name: getattr(math, name)
        for name in ("ceil", "cos", "exp", "floor", "log", "log10", "log2", "sin", "sqrt", "tan")
    },
    "abs": abs,
    "comb": _for_integers(math.comb, _LARGEST_CHOICE),
    "factorial": _for_integers(math.factorial, _LARGEST_FACTORIAL),
    "max": lambda *values: max(values),
    "min": lambda *values: min(values),
    "round": _round,
    "sum": lambda *values: sum(values),
}
_OFFER = (
    f"there are + - * / // % **, parentheses, {', '.join(_CONSTANTS)}, and the functions "
    f"{', '.join(sorted(_FUNCTIONS))}"
)
