"""Statements through definition, database and back: the catalog is the same, and no secret is in a row."""

from __future__ import annotations

from pathlib import Path

from penstock.catalog.changes import changes_between
from penstock.catalog.define import Surroundings, define_function, define_secret, define_sink, define_source
from penstock.catalog.model import Definition, ObjectKey
from penstock.catalog.snapshot import Catalog
from penstock.secrets import Secret
from penstock.sql.script import parse_statement
from penstock.sql.statements import CreateFunction, CreateRelation, CreateSecret, CreateSink, Name
from penstock.stores.catalog_store import CatalogStore, StoredObject

CANARY = "canary-d4e1-hunter2"

SCRIPT = (
    f"CREATE SECRET named AS '{CANARY}-named'",
    "CREATE SECRET elsewhere AS '${env:PASSWORD}'",
    "CREATE FUNCTION label(x BIGINT) RETURNS STRING LANGUAGE python AS 'shop.label'",
    (
        "CREATE STREAM orders (id BIGINT, at TIMESTAMP, day AS DATE_TRUNC('DAY', at), WATERMARK FOR at) "
        "WITH (connector = 'kafka', topic = 'orders', format = 'json', properties.ssl.key.password = "
        f"'{CANARY}-inline', properties.ssl.keystore.password = SECRET named)"
    ),
    (
        "CREATE SINK out WITH (connector = 'kafka', topic = 'out', bootstrap_servers = 'b:9092', "
        f"properties.ssl.key.password = '{CANARY}-sink') FORMAT PLAIN ENCODE JSON"
    ),
    'CREATE TABLE "Mixed Case" ("a b" INT) WITH (connector = \'blackhole\')',
)


def define(sql: str, known: Surroundings, stored: Secret | None = None) -> Definition:
    statement = parse_statement(sql)
    if isinstance(statement, CreateRelation):
        return define_source(statement, known)
    if isinstance(statement, CreateSink):
        return define_sink(statement, known)
    if isinstance(statement, CreateFunction):
        return define_function(statement)
    assert isinstance(statement, CreateSecret)
    return define_secret(statement, stored)


def read_back(objects: tuple[StoredObject, ...], secrets: dict[str, Secret]) -> Catalog:
    catalog = Catalog()
    for item in objects:
        known = Surroundings(catalog=catalog, secrets=secrets)
        own = secrets.get(item.key.name) if item.key.space == "secret" else None
        catalog, notices = catalog.put(define(item.text, known, own))
        assert notices == ()
    return catalog


def made() -> Catalog:
    catalog = Catalog()
    for sql in SCRIPT:
        catalog, _ = catalog.put(define(sql, Surroundings(catalog=catalog)))
    return catalog


def test_h16_a_catalog_read_back_is_the_same(tmp_path: Path) -> None:
    catalog = made()
    with CatalogStore.open(tmp_path / "state") as store:
        store.apply(changes_between(Catalog(), catalog))
    (tmp_path / "state").rename(tmp_path / "moved")
    with CatalogStore.open(tmp_path / "moved") as store:
        again = read_back(store.objects(), store.secrets())
    assert again == catalog
    assert [item.text for item in again] == [item.text for item in catalog]
    assert changes_between(catalog, again) == ()
    assert again[ObjectKey("relation", "orders")].depends_on == (ObjectKey("secret", "named"),)
    for sql in SCRIPT:
        assert again.put(define(sql, Surroundings(catalog=again)))[0] is again


def test_a_canary_is_in_no_row_text_or_repr(tmp_path: Path) -> None:
    catalog = made()
    path = tmp_path / "state"
    with CatalogStore.open(path) as store:
        store.apply(changes_between(Catalog(), catalog))
        while_open = {item.name for item in path.iterdir() if item.is_file() and CANARY.encode() in item.read_bytes()}
        assert CANARY not in repr(store.objects())
    closed = {item.name for item in path.iterdir() if item.is_file() and CANARY.encode() in item.read_bytes()}
    assert (while_open, closed) == (set(), set())
    assert CANARY not in repr(catalog) + "".join(item.text for item in catalog)
    holders = {item.name.partition(".")[0] for item in (path / "secrets").iterdir() if CANARY in item.read_text()}
    assert len(holders) == 3


def test_a_renamed_relation_takes_its_secrets_along(tmp_path: Path) -> None:
    catalog = made()
    with CatalogStore.open(tmp_path / "state") as store:
        store.apply(changes_between(Catalog(), catalog))
        renamed, _ = catalog.rename(Name("orders"), "STREAM", Name("purchases"))
        store.apply(changes_between(catalog, renamed))
        again = read_back(store.objects(), store.secrets())
        assert {name.partition(".")[0] for name in store.secrets()} == {"named", "purchases", "out"}
    assert {item.object_key for item in again} == {item.object_key for item in renamed}
    key = ObjectKey("relation", "purchases")
    assert again[key] == renamed[key]
