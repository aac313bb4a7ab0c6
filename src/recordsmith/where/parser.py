"""Parser of where expressions.

A tokenizer and a recursive-descent parser; nothing is evaluated as code.

    expression  = conjunction { "or" conjunction }
    conjunction = negation { "and" negation }
    negation    = "not" negation | "(" expression ")" | "has" "(" feature ")"
                | "missing" "(" feature ")" | comparison
    comparison  = ( feature | "len" "(" feature ")" | "all" "(" feature ")" )
                  ( ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) value
                  | [ "not" ] "in" "(" value { "," value } [ "," ] ")" )
    feature     = a name such as image/class/label, or any name in `backticks`
    value       = a number, or text in " or '
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple, NoReturn

from recordsmith.errors import OptionError, option, suggest_names
from recordsmith.where.conditions import (
    BARE_KEY,
    KEYWORDS,
    OPERATORS,
    Combination,
    Comparison,
    Condition,
    Not,
    Presence,
    Value,
)

MOST_NESTED = 100
"""The deepest nesting of parentheses and `not`."""

_TOKEN = re.compile(
    rf"""\s*(?:
        (?P<key>`(?:[^`]|``)+`)
        | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
        | (?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w/.]))
        | (?P<word>{BARE_KEY.pattern})
        | (?P<mark>==|!=|<=|>=|<|>|\(|\)|,)
    )""",
    re.VERBOSE | re.DOTALL,
)
_SPACE = re.compile(r"\s*")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'"}
_INSTEAD = {
    "=": "==",
    "===": "==",
    "<>": "!=",
    "~=": "!=",
    "&&": "and",
    "&": "and",
    "||": "or",
    "|": "or",
    "!": "not",
    "[": "(",
    "{": "(",
    "]": ")",
    "}": ")",
}
_COMPARISONS = f"a comparison ({' '.join(OPERATORS)} in, not in)"
_SHOWN = 60  # characters on each side of an error


class _Token(NamedTuple):
    """kind: key, text, number, word, mark, end, or wrong for anything else."""

    kind: str
    text: str
    start: int


def parse_condition(text: str) -> Condition:
    """Parse an expression.

    Raises:
        OptionError: it is invalid; the excerpt shows the place.
    """
    if not isinstance(text, str):
        raise OptionError(option="where", value=text, expected="text such as 'label == 3'")
    return _Parser(text).parse()


class _Parser:
    """Parses the tokens in one pass with one token of lookahead."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._depth = 0
        self._next = self._token_at(0)

    def parse(self) -> Condition:
        condition = self._several("or")
        if self._next.kind != "end":
            self._refuse("and, or, or the end")
        return condition

    # -- conditions ----------------------------------------------------------------------------

    def _several(self, joined_by: Literal["and", "or"]) -> Condition:
        parts = [self._conjunction() if joined_by == "or" else self._negation()]
        while self._accept(joined_by):
            parts.append(self._conjunction() if joined_by == "or" else self._negation())
        return parts[0] if len(parts) == 1 else Combination(joined_by, tuple(parts))

    def _conjunction(self) -> Condition:
        return self._several("and")

    def _negation(self) -> Condition:
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise self._error(
                f"parentheses and not are nested {self._depth} deep, expected at most {MOST_NESTED}"
            )
        if self._accept("not"):
            condition: Condition = Not(self._negation())
        elif self._accept("("):
            condition = self._several("or")
            self._expect(")", "and, or, or )")
        elif self._next.text in ("has", "missing") and self._next.kind == "word":
            wanted = self._advance().text == "has"
            condition = Presence(self._key_in_parentheses("has" if wanted else "missing"), wanted)
        else:
            condition = self._comparison()
        self._depth -= 1
        return condition

    def _comparison(self) -> Condition:
        measure: Any = "any"
        if self._next.text in ("len", "all") and self._next.kind == "word":
            measure = self._advance().text
            key = self._key_in_parentheses(measure)
        else:
            key = self._key("a feature, not, has(…), missing(…), len(…), all(…) or (")
        start = self._next
        if self._accept("in"):
            return Comparison(key, measure, "in", self._values(measure))
        if self._accept("not"):
            self._expect("in", "in")
            return Comparison(key, measure, "not in", self._values(measure))
        if start.kind != "mark" or start.text not in OPERATORS:
            hint = f"; to test whether it exists, write has({key})" if measure == "any" else ""
            self._refuse(_COMPARISONS, hint if start.kind in ("end", "word") else "")
        self._advance()
        return Comparison(key, measure, start.text, (self._value(measure),))

    # -- keys and values -----------------------------------------------------------------------

    def _key_in_parentheses(self, word: str) -> str:
        self._expect("(", f"( and a feature after {word} (a feature of this name: `{word}`)")
        key = self._key("a feature")
        self._expect(")", ")")
        return key

    def _key(self, expected: str) -> str:
        token = self._next
        if token.kind == "key":
            self._advance()
            return token.text[1:-1].replace("``", "`")
        if token.kind != "word" or token.text in KEYWORDS:
            hint = {
                "number": "; write the feature on the left",
                "text": "; write the feature on the left, without quotes",
            }.get(token.kind, "")
            self._refuse(expected, hint)
        self._advance()
        return token.text

    def _values(self, measure: str) -> tuple[Value, ...]:
        start = self._next
        self._expect("(", "values in parentheses, such as (1, 2)")
        values = [self._value(measure)]
        while self._accept(","):
            if self._next.text == ")":
                break
            values.append(self._value(measure))
        self._expect(")", ", or )")
        if len({isinstance(value, bytes) for value in values}) > 1:
            self._next = start
            raise self._error("numbers and text are mixed, expected one of them")
        return tuple(values)

    def _value(self, measure: str) -> Value:
        token = self._next
        if token.kind == "text" and measure != "len":
            self._advance()
            return self._unescaped(token)
        if token.kind != "number":
            hint = f'; write text in quotes: "{token.text}"' if token.kind == "word" else ""
            self._refuse("a number" if measure == "len" else "a number, or text in quotes", hint)
        try:
            value = float(token.text) if set(token.text) & set(".eE") else int(token.text)
        except ValueError:  # more digits than Python converts
            value = float("inf")
        if value in (float("inf"), float("-inf")):
            raise self._error(f"the number {token.text:.30} is too large")
        self._advance()
        return value

    def _unescaped(self, token: _Token) -> bytes:
        """Return the bytes of quoted text."""
        text, at, pieces = token.text[1:-1], 0, []
        try:
            for match in _ESCAPE.finditer(text):
                pieces.append(text[at : match.start()].encode("utf-8", "surrogateescape"))
                pieces.append(bytes.fromhex(match[1]) if match[1] else _ESCAPED[match[2]].encode())
                at = match.end()
            pieces.append(text[at:].encode("utf-8", "surrogateescape"))
        except KeyError as error:
            self._next = token
            raise self._error(
                f"\\{error.args[0]} is not an escape sequence; write a backslash as \\\\"
            ) from None
        except UnicodeEncodeError:
            self._next = token
            raise self._error("text contains surrogates") from None
        return b"".join(pieces)

    # -- tokens --------------------------------------------------------------------------------

    def _token_at(self, at: int) -> _Token:
        match = _TOKEN.match(self._text, at)
        if match is not None:
            kind = str(match.lastgroup)
            return _Token(kind, match[kind], match.start(kind))
        space = _SPACE.match(self._text, at)
        start = at if space is None else space.end()
        if start == len(self._text):
            return _Token("end", "", start)
        rest = self._text[start : start + _SHOWN]
        wrong = re.match(r"[\w/.+-]+|[=<>!~&|]+|.", rest, re.DOTALL)
        return _Token("wrong", rest if wrong is None else wrong[0], start)

    def _advance(self) -> _Token:
        token = self._next
        self._next = self._token_at(token.start + len(token.text))
        return token

    def _accept(self, text: str) -> bool:
        """Skip this word or mark if it is next; return whether it was."""
        is_next = self._next.text == text and self._next.kind in ("word", "mark")
        if is_next:
            self._advance()
        return is_next

    def _expect(self, text: str, expected: str) -> None:
        if not self._accept(text):
            self._refuse(expected)

    # -- errors ---------------------------------------------------------------------------------

    def _refuse(self, expected: str, hint: str = "") -> NoReturn:
        token = self._next
        if token.kind == "end":
            raise self._error(f"expected {expected}, found the end{hint}")
        if token.kind == "wrong" and token.text in "\"'`":
            raise self._error(f"the quote is not closed, expected another {token.text}")
        if token.kind == "wrong" and token.text[0].isdigit() and "feature" in expected:
            hint = "; write names that begin with a digit in backticks"
        if token.text in _INSTEAD and token.kind == "wrong":
            hint = f"; did you mean {_INSTEAD[token.text]}?"
        elif token.kind == "word" and token.text not in KEYWORDS:
            lower = token.text.lower()
            if lower in KEYWORDS:
                hint = f"; did you mean {lower}?"
        raise self._error(f"expected {expected}, found {token.text:.60}{hint}")

    def _error(self, what: str) -> OptionError:
        """Return an error about the next token, with an excerpt that marks it."""
        at = self._next.start
        begin, end = max(0, at - _SHOWN), at + _SHOWN
        shown = re.sub(r"\s", " ", self._text[begin:end])
        before, after = "…" if begin else "", "…" if end < len(self._text) else ""
        caret = " " * (at - begin + len(before)) + "^"
        return OptionError(
            f"invalid {option('where')} at character {at + 1}: {what}",
            option="where",
            value=self._text,
            excerpt=(f"  {before}{shown}{after}", f"  {caret}"),
        )


def unknown_feature(key: str, known: Any) -> OptionError:
    """Return the error for a feature that no record has."""
    return OptionError(
        f"{option('where')} uses the feature {key!r}, but no record has it; "
        + suggest_names(key, known, "the records have no features"),
        option="where",
        value=key,
    )
