"""The values of secrets: files under `secrets/` of the state directory, readable by the owner only.

A value is never overwritten: a new one gets the next version, and the catalog database says which version counts. So
a crash between writing the file and committing the row leaves the old value in force.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from penstock.errors import CatalogError
from penstock.frozen import frozen
from penstock.secrets import Secret
from penstock.stores.private_files import make_private_directory, sync_directory, unusable, write_private

DIRECTORY: Final = "secrets"

_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")

_OURS: Final = re.compile(r"(?:[a-z0-9_-]|%[0-9A-F]{2})+\.[1-9][0-9]*(?:\.[0-9]+\.partial)?", re.ASCII)

# Longer names would not fit into a file name on common file systems.
_LONGEST: Final = 200


def file_name(name: str) -> str:
    """A secret's name as a file name: whatever is not plain is quoted, so that it never leaves the directory.

    Upper-case letters are quoted too, because some file systems do not tell them from lower-case ones.

    >>> file_name("orders.sasl_password"), file_name("../x"), file_name("A")
    ('orders%2Esasl_password', '%2E%2E%2Fx', '%41')
    """
    return "".join(
        letter if letter in _PLAIN else "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogatepass"))
        for letter in name
    )


def _ours(path: Path) -> bool:
    """Whether a file has a name that only we give: quoted name, version, and `.partial` while it is written."""
    return bool(_OURS.fullmatch(path.name)) and path.is_file() and not path.is_symlink()


@frozen
class SecretFiles:
    """The secret files of one state directory."""

    state_path: Path

    @property
    def directory(self) -> Path:
        """Where the files are."""
        return self.state_path / DIRECTORY

    def path(self, name: str, version: int) -> Path:
        """The file of one version of a secret."""
        quoted = file_name(name)
        if len(quoted) > _LONGEST:
            raise CatalogError(
                "INVALID_DEFINITION",
                f"the name of secret {name[:40]}… is too long",
                hint=f"take a name of at most {_LONGEST} plain characters",
            )
        return self.directory / f"{quoted}.{version}"

    def write(self, name: str, version: int, value: Secret) -> None:
        """Keep a value; it is on disk when this returns."""
        path = self.path(name, version)
        make_private_directory(self.directory)
        try:
            write_private(path, value.reveal().encode())
        except OSError as error:
            raise unusable(self.directory, error) from None

    def read(self, name: str, version: int) -> Secret:
        """A value as it was written."""
        path = self.path(name, version)
        try:
            return Secret(path.read_bytes().decode())
        except OSError as error:
            raise unusable(path, error) from None
        except UnicodeDecodeError:
            raise unusable(path, ValueError("it is not text")) from None

    def keep_only(self, counted: Iterable[tuple[str, int]]) -> None:
        """Remove our other files: old versions, and what a crash left behind. What others put there stays."""
        wanted = {self.path(name, version).name for name, version in counted}
        try:
            gone = [path for path in self.directory.iterdir() if path.name not in wanted and _ours(path)]
            for path in gone:
                path.unlink(missing_ok=True)
            if gone:
                sync_directory(self.directory)
        except OSError as error:
            raise unusable(self.directory, error) from None
