"""A16: the page on connectors of one's own does what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "connectors.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    # A process of its own, because a registration lasts.
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a16_the_example_prints_what_the_page_shows() -> None:
    example, _ = blocks("python")
    *_, shown = blocks("text")
    done = run(example)
    assert (done.stdout, done.stderr) == (shown, "")
    assert "hunter2" not in shown


def test_a16_the_command_line_behind_the_registration_knows_the_connector(tmp_path: Path) -> None:
    example, launcher = blocks("python")
    script = tmp_path / "air.sql"
    script.write_text("CREATE STREAM air (celsius DOUBLE) WITH (connector = 'weather', api_key = 'hunter2');")
    alone = run(launcher, "check", str(script))
    assert alone.returncode == 1
    assert "UNKNOWN_CONNECTOR" in alone.stdout + alone.stderr
    assert "hunter2" not in alone.stdout + alone.stderr
    done = run(example + launcher, "check", str(script))
    assert (done.returncode, done.stderr) == (0, "")
    assert "hunter2" not in done.stdout


def test_importing_the_package_imports_no_options() -> None:
    done = run("import penstock, sys; print([name for name in sys.modules if name.startswith('penstock.options')])")
    assert done.stdout == "[]\n"
