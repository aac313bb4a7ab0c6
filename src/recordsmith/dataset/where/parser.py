"""Parser of where expressions: conditions in Python's grammar.

Names and values are replaced by identifiers of the same length before Python's `ast` parses the
expression. So a name may be `image/class/label`, only the tokens below reach Python's parser, and
places in the tree are places in the expression. Nothing is evaluated as code.
"""

from __future__ import annotations

import ast
import math
import re
from contextlib import suppress
from typing import Any, Literal

from recordsmith.dataset.where.conditions import (
    OPERATORS,
    TEXT_METHODS,
    Combination,
    Comparison,
    Condition,
    Value,
)
from recordsmith.support.errors import OptionError, option
from recordsmith.support.words import suggest_names

MAX_NESTED = 100
"""The deepest nesting of parentheses and `not`."""
MAX_CHARACTERS = 1_000_000
"""The most characters of an expression."""
MAX_COMPARISONS = 1_000
"""The most comparisons of an expression: each is evaluated for every record."""

_BARE_KEY = r"[^\W\d][\w/.:\-]*"
_WORD_END = r"(?![\w/.:\-`])"
_TOKEN = re.compile(
    rf"""\s*(?:
        (?P<join>(?:and|or){_WORD_END})
        | (?P<compare>(?:not\s+)?in{_WORD_END}|(?:[=!<>]=|[<>])(?![=<>!~&|]))
        | (?P<not>not{_WORD_END})
        | (?P<value>[bB]?(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
            | [+-]?\.?[0-9](?:[eE][+-]|[\w.])*)
        | (?P<name>`(?:[^`]|``)+`(?!\w)(?:\.\w+(?=\s*\())?|{_BARE_KEY})
        | (?P<open>[(\[{{])
        | (?P<close>[)\]}}])
        | (?P<comma>,)
        | (?P<end>\Z)
        | (?P<other>[=<>!~&|]+|.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_BEGIN = {"name", "value", "open", "not"}
_CONTINUE = {"compare", "join", "close", "comma", "end"}
_MAY_FOLLOW = {
    **dict.fromkeys(("start", "open", "join", "not"), _BEGIN),
    "comma": {*_BEGIN, "close"},
    "compare": _BEGIN - {"not"},
    "name": {*_CONTINUE, "open"},
    "value": _CONTINUE,
    "close": _CONTINUE,
}
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_CALLED = ("has", "missing", "len", "all")
_KEYWORDS = ("and", "or", "not", "in", *_CALLED)
_INSTEAD = {
    **dict.fromkeys(("=", "===", "is"), "=="),
    **dict.fromkeys(("<>", "~="), "!="),
    **dict.fromkeys(("&", "&&"), "and"),
    **dict.fromkeys(("|", "||"), "or"),
    "!": "not",
    **{word.upper(): word for word in _KEYWORDS},
}
_OPERATOR_NAMES = {
    **dict(zip((ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE), OPERATORS, strict=True)),
    ast.In: "in",
    ast.NotIn: "not in",
}
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPARISON = f"a comparison ({' '.join(OPERATORS)} in, not in)"
_VALUE = "a number, or text in quotes"
_EXCERPT_LENGTH = 60  # characters on each side of an error
_MAX_DIGITS = 1000  # Python takes quadratic time to convert a number


def parse_condition(text: str) -> tuple[Condition, str]:
    """Parse an expression; return it and its normal form."""
    if not isinstance(text, str) or len(text) > MAX_CHARACTERS:
        expected = f"text such as 'label == 3', at most {MAX_CHARACTERS:,} characters"
        raise OptionError(option="where", value=text, expected=expected)
    return _Parser(text).parse()


class _Parser:
    """Masks names and values, then converts the tree, which becomes that of the normal form."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._values: dict[int, Value] = {}  # by place

    def parse(self) -> tuple[Condition, str]:
        tree = ast.parse(f"({self._masked()})", mode="eval").body
        return self._condition(tree), ast.unparse(tree)

    # -- tokens --------------------------------------------------------------------------------

    def _masked(self) -> str:
        """Check the order of tokens, and replace names and values."""
        masked, before, depth, joins = [], "start", 0, 0
        opened: list[tuple[str, int]] = []  # closing brackets, and the depth inside
        for match in _TOKEN.finditer(self._text):
            kind = str(match.lastgroup)
            token, place = match[kind], match.start(kind)
            allowed = _MAY_FOLLOW[before] - ({"end"} if opened else {"close", "comma"})
            if kind not in allowed or (kind == "close" and token != opened[-1][0]):
                raise self._misplaced(token, place, before, opened[-1][0] if opened else "the end")
            if kind == "value":
                self._values[place] = self._value_of(token, place)
            elif kind == "join":
                joins += 1
                if joins >= MAX_COMPARISONS:
                    what = f"more than {MAX_COMPARISONS:,} comparisons; use in (…) for many values"
                    raise self._error(place, what)
            elif kind == "open":
                opened.append((_CLOSING[token], depth + 1))
            elif kind == "close":
                opened.pop()
            depth = depth + 1 if kind == "not" else opened[-1][1] if opened else 0
            if depth > MAX_NESTED:
                raise self._error(place, f"expected ( and not nested at most {MAX_NESTED} deep")
            masked.append(" " * (place - match.start()))
            if kind in ("name", "value"):
                end = token[-1] if token[-1] in "\"'" else "_"
                token = (end + "_" * (len(token) - 2) + end)[: len(token)]
            masked.append(token)
            before = kind
            if kind == "end":
                break
        return re.sub(r"\s", " ", "".join(masked))

    def _value_of(self, token: str, place: int) -> Value:
        is_text = token[-1] in "\"'"
        for escape in re.finditer(r"\\(.)", token, re.DOTALL) if is_text else ():
            if escape[1] not in "\\'\"nrtx" + "uU" * (token[0] in "\"'"):
                what = f"{escape[0]} is not an escape sequence; write a backslash as \\\\"
                raise self._error(place, what)
        # arguments that are not UTF-8 have surrogates, which Python's parser refuses
        token = re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", token)
        try:
            value = ast.literal_eval(token) if is_text or len(token) < _MAX_DIGITS else math.inf
            value = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        except UnicodeEncodeError:
            raise self._error(place, "text contains surrogates") from None
        except (SyntaxError, ValueError) as error:
            hint = "" if is_text else "; write names that begin with a digit in backticks"
            raise self._error(place, f"{error.args[0]}{hint}") from None
        if isinstance(value, complex) or value in (math.inf, -math.inf):
            raise self._error(place, f"the number {token:.30} is complex or too large")
        return value

    # -- conditions ----------------------------------------------------------------------------

    def _condition(self, node: ast.expr) -> Condition:
        """Convert a part of the tree, in which names and values get their own text back."""
        if isinstance(node, ast.BoolOp):
            word: Literal["and", "or"] = "and" if isinstance(node.op, ast.And) else "or"
            return Combination(word, tuple(map(self._condition, node.values)))
        if isinstance(node, ast.UnaryOp):
            return Combination("not", (self._condition(node.operand),))
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.Call):
            called = self._source(node.func)
            name, _, method = called.rpartition(".")
            if called in ("has", "missing"):
                test = (">" if called == "has" else "==", (0,))
                return Comparison(self._argument(node), "len", (test,), ast.unparse(node))
            if method in TEXT_METHODS:
                values, node.args = self._constants(node.args)
                if len(values) != 1 or not isinstance(values[0], bytes):
                    raise self._unexpected(node, f"one text in quotes after {method}")
                key = _unquoted(name)
                node.func = ast.Name(f"{_quoted(key)}.{method}")
                return Comparison(key, "any", ((method, values),), ast.unparse(node))
        source = self._source(node)
        measure, _ = self._feature(node)
        hint = f"; to test whether it exists, write has({source})" if measure == "any" else ""
        what = f"expected {_COMPARISON} after {source:.60}{hint}"
        raise self._error(self._place(node) + len(source), what)

    def _comparison(self, node: ast.Compare) -> Comparison:
        names = [_OPERATOR_NAMES[type(operator)] for operator in node.ops]
        tests: list[tuple[str, tuple[Value, ...]]] = []
        feature = node.left
        if self._is_value(node.left) and names[0] in _MIRRORED:
            feature = node.comparators[0]
            values, (node.left,) = self._constants([node.left])
            tests.append((_MIRRORED[names.pop(0)], values))
        measure, key = self._feature(feature)
        if len(names) > 1:
            raise self._unexpected(node.comparators[-1], "at most two values, as in 0 < a < 3")
        for name in names:
            last, given = node.comparators[-1], node.comparators[-1:]
            if name in ("in", "not in"):
                if not isinstance(last, (ast.Tuple, ast.List, ast.Set)):
                    raise self._unexpected(last, "values in parentheses, such as (1, 2) or (1,)")
                given = last.elts
            values, nodes = self._constants(given)
            node.comparators[-1] = nodes[0] if given[0] is last else ast.Tuple(nodes, ast.Load())
            tests.append((name, values))
        kinds = {isinstance(value, bytes) for _, values in tests for value in values}
        if len(kinds) > 1 or (measure == "len" and True in kinds):
            expected = "numbers" if measure == "len" else "numbers or text, not both"
            raise self._unexpected(node, f"a comparison with {expected}")
        return Comparison(key, measure, tuple(tests), ast.unparse(node))

    def _constants(self, nodes: list[ast.expr]) -> tuple[tuple[Value, ...], list[ast.expr]]:
        values: list[Value] = []
        constants: list[ast.expr] = []
        for node in nodes:
            if not self._is_value(node):
                source = self._source(node)
                hint = f'; write text in quotes: "{source}"' if isinstance(node, ast.Name) else ""
                raise self._unexpected(node, _VALUE, hint)
            value: Any = self._values[self._place(node)]
            values.append(value)
            with suppress(AttributeError, UnicodeDecodeError):
                value = value.decode()  # readable, if it is UTF-8
            constants.append(ast.Constant(value))
        return tuple(values), constants

    def _feature(self, node: ast.expr) -> tuple[Literal["any", "all", "len"], str]:
        source = self._source(node)
        if isinstance(node, ast.Call):
            called: Any = self._source(node.func)
            if called in ("all", "len"):
                return called, self._argument(node)
        elif source in _CALLED:
            raise self._unexpected(node, f"a feature in parentheses after it, or `{source}`")
        elif isinstance(node, ast.Name) and not self._is_value(node):
            key = _unquoted(source)
            node.id = _quoted(key)
            return "any", key
        hint = "; write the feature on the left" if self._is_value(node) else ""
        raise self._unexpected(node, "a feature, len(…) or all(…)", hint)

    def _argument(self, node: ast.Call) -> str:
        called = self._source(node.func)
        if len(node.args) != 1 or not isinstance(node.args[0], ast.Name):
            raise self._unexpected(node, f"{called}(…) with one feature")
        node.func = ast.Name(called)
        return self._feature(node.args[0])[1]

    # -- places and errors ---------------------------------------------------------------------

    def _place(self, node: ast.expr) -> int:
        return node.col_offset - 1  # the tree is in parentheses

    def _source(self, node: ast.expr) -> str:
        return self._text[self._place(node) : (node.end_col_offset or 0) - 1]

    def _is_value(self, node: ast.expr) -> bool:
        return isinstance(node, (ast.Name, ast.Constant)) and self._place(node) in self._values

    def _misplaced(self, token: str, place: int, before: str, end: str) -> OptionError:
        """Return the error for a token that cannot follow the one before."""
        if token in ("'", '"', "`"):
            return self._error(place, f"the quote is not closed, expected another {token}")
        expected = f"{_COMPARISON}, and, or, or {end}"
        if before in ("start", "open", "join", "not", "comma"):
            expected = "a feature, a value, not, has(…), missing(…), len(…), all(…) or ("
        elif before == "compare":
            expected = _VALUE
        hint = f"; did you mean {_INSTEAD[token]}?" if token in _INSTEAD else ""
        return self._error(place, f"expected {expected}, found {token or 'the end':.60}{hint}")

    def _unexpected(self, node: ast.expr, expected: str, hint: str = "") -> OptionError:
        found = self._source(node)
        return self._error(self._place(node), f"expected {expected}, found {found:.60}{hint}")

    def _error(self, place: int, what: str) -> OptionError:
        begin, end = max(0, place - _EXCERPT_LENGTH), place + _EXCERPT_LENGTH
        shown = re.sub(r"\s", " ", self._text[begin:end])
        before, after = "…" if begin else "", "…" if end < len(self._text) else ""
        caret = " " * (place - begin + len(before)) + "^"
        return OptionError(
            f"invalid {option('where')} at character {place + 1}: {what}",
            option="where",
            value=self._text,
            excerpt=(f"  {before}{shown}{after}", f"  {caret}"),
        )


def _quoted(key: str) -> str:
    """Write a key as in an expression, in backticks where necessary."""
    is_bare = re.fullmatch(_BARE_KEY, key) and key not in _KEYWORDS
    return key if is_bare else "`" + key.replace("`", "``") + "`"


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


def unknown_feature(key: str, known: Any) -> OptionError:
    return OptionError(
        f"{option('where')} uses the feature {key!r}, but no record has it; "
        + suggest_names(key, known, "the records have no features"),
        option="where",
        value=key,
    )
