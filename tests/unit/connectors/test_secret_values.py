"""References in options are read when they are used, from the environment, files and the catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.connectors.secret_values import forget_secrets, revealed, use_secrets
from penstock.errors import OptionError, RuntimeFailure
from penstock.options.values import deferred, text_value
from penstock.secrets import Secret
from penstock.sql.statements import OptionValue


def test_values_are_put_in_the_place_of_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER_NAME", "ada")
    (tmp_path / "word").write_text("pass\n")
    mixed = deferred(text_value(f"${{env:USER_NAME}}:${{file:{tmp_path / 'word'}}}@{{{{ USER_NAME }}}}"))
    assert revealed(mixed, tmp_path) == "ada:pass@ada"
    assert revealed(Secret("plain"), tmp_path) == "plain"
    assert revealed(7, tmp_path) == 7
    assert revealed(None, tmp_path) is None


def test_files_with_values_lie_below_the_allowed_paths(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for place in (tmp_path / "in" / "inside", tmp_path / "outside"):
        place.write_text("pass", encoding="utf-8")
    use_secrets(tmp_path, lambda _: Secret(""), (str(tmp_path / "in"),))
    try:
        assert revealed(deferred(text_value(f"${{file:{tmp_path}/in/inside}}")), tmp_path) == "pass"
        for hidden in (f"{tmp_path}/outside", f"{tmp_path}/in/../outside"):
            with pytest.raises(RuntimeFailure, match="lies outside the allowed paths"):
                revealed(deferred(text_value(f"${{file:{hidden}}}")), tmp_path)
    finally:
        forget_secrets(tmp_path)


def test_secrets_of_the_catalog_are_found_while_it_is_open(tmp_path: Path) -> None:
    named = deferred(OptionValue("secret", Secret("p")))
    with pytest.raises(OptionError, match="secret p cannot be read"):
        revealed(named, tmp_path)
    use_secrets(tmp_path, lambda name: Secret(f"value of {name}"))
    try:
        assert revealed(named, tmp_path) == "value of p"
        assert revealed(named, tmp_path, {"p": Secret("just written")}) == "just written"
    finally:
        forget_secrets(tmp_path)
