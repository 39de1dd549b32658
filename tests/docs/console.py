"""What the commands of a console block print; `python -m tests.docs.console` writes it into the pages."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

from tests.docs.blocks import Block, blocks
from tests.project import ROOT

_ENGINE = re.compile(r"\$ penstock (run|sql) (?!--help)")


def console_blocks(*, engine: bool = False) -> list[Block]:
    """The console blocks that run our command line: those that start Spark, or the others."""
    found = [block for block in blocks("console") if block.text.startswith("$ penstock")]
    return [block for block in found if (_ENGINE.match(block.text) is not None) == engine]


def printed(block: Block, **environment: str) -> str:
    """The block as it should be: each command, and below it what it prints."""
    commands = re.findall(r"^\$ (.*)$", block.text, flags=re.MULTILINE)
    return "".join(f"$ {command}\n{_output(command, environment)}" for command in commands)


def _output(command: str, extra: dict[str, str]) -> str:
    program, *arguments = shlex.split(command, comments=True)
    assert program == "penstock", command
    hidden = ("PENSTOCK", "FORCE_COLOR")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    done = subprocess.run(
        [sys.executable, "-m", "penstock", *arguments],
        cwd=ROOT,
        env={**environment, "NO_COLOR": "1", "COLUMNS": "100", **extra},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=240,
    )
    return done.stdout.rstrip() + "\n"


if __name__ == "__main__":
    for found in console_blocks():
        page = found.path.read_text(encoding="utf-8")
        found.path.write_text(
            page.replace(f"```console\n{found.text}```", f"```console\n{printed(found)}```"), encoding="utf-8"
        )
