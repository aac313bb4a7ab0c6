"""The help of each command fits a terminal of 80 columns, and its examples parse."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from typer.testing import CliRunner

from recordsmith.cli import COMMANDS as NAMES
from recordsmith.cli import app, load_command

COMMANDS: dict[str, Any] = {name: load_command(name) for name in NAMES}
SAME_EVERYWHERE = ("--json", "--quiet", "--help", "--where", "--at", "--html", "--shard-names")


def help_of(*command: str) -> str:
    environment = {"COLUMNS": "80", "TERMINAL_WIDTH": "80", "NO_COLOR": "1", "TERM": "dumb"}
    result = CliRunner().invoke(app, [*command, "--help"], env=environment)
    assert result.exit_code == 0
    return result.stdout


def examples_of(name: str) -> list[str]:
    return re.findall(rf"`(recordsmith {name}\b[^`]*)`", COMMANDS[name].help)


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_no_line_is_wider_than_the_terminal(name: str) -> None:
    shown = help_of(*filter(None, [name]))
    assert not re.search(r"<(bool|str|list|int|float)", shown)  # types of Python
    lines = shown.splitlines()
    assert len(lines) > 8
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_parse_and_are_one_line(name: str) -> None:
    examples = examples_of(name)
    assert examples
    shown = help_of(name)
    for example in examples:
        assert example in shown  # not wrapped
        command, _, _ = example.partition(" > ")
        context = COMMANDS[name].make_context(name, shlex.split(command)[2:])
        assert not context.args


@pytest.mark.parametrize("name", COMMANDS)
def test_the_purpose_is_one_line(name: str) -> None:
    purpose, _, _ = COMMANDS[name].help.partition("\n\n")
    assert len(purpose) <= 76
    assert purpose.endswith(".")


def test_an_option_has_the_same_words_everywhere() -> None:
    found: dict[str, set[tuple[str, str]]] = {}
    for command in COMMANDS.values():
        for param in command.params:
            for opt in param.opts:
                if opt in SAME_EVERYWHERE:
                    found.setdefault(opt, set()).add((param.metavar or "", param.help or ""))
    assert {opt: len(texts) for opt, texts in found.items()} == dict.fromkeys(found, 1)
    assert "--json" in found


def test_an_option_has_one_metavar() -> None:
    """Except for names that mean something else in another command."""
    metavars: dict[str, set[str]] = {}
    for command in COMMANDS.values():
        for param in command.params:
            for opt in (opt for opt in param.opts if opt.startswith("-")):
                metavars.setdefault(opt, set()).add(str(param.metavar))
    several = {opt for opt, names in metavars.items() if len(names) > 1}
    assert several <= {"--only", "--sample", "--skip-errors"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_parameter_is_explained(name: str) -> None:
    for param in COMMANDS[name].get_params(
        COMMANDS[name].make_context(name, [], resilient_parsing=True)
    ):
        assert param.help, param.opts
        assert re.search(r"[.\]]$", param.help), param.help


def test_the_help_of_pack_begins_with_what_most_people_need() -> None:
    """And has the rest in panels of their own."""
    shown = help_of("pack")
    options = re.findall(r"^. (--[a-z-]+) ", shown, re.MULTILINE)
    assert options[:2] == ["--splits", "--shards"]
    first = shown.partition("─ Options ")[2].partition("╰")[0]
    assert "--format " in first
    assert not re.search("--(shard-names|engine|license|keys|resplit|write-plan) ", first)


def test_commands_that_few_need_come_last() -> None:
    shown = help_of()
    everyday, _, advanced = shown.partition("\nAdvanced:\n")
    for name in ("pack", "verify", "view", "query", "append"):
        assert re.search(rf"^  {name} ", everyday, re.MULTILINE)
    for name in ("run", "finish", "index", "bench", "cache", "schema", "normalisation"):
        assert re.search(rf"^  {name} ", advanced, re.MULTILINE)


def test_no_command_prints_the_help() -> None:
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 2
    assert result.stdout == help_of()
