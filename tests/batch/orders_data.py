"""A small wholesale supplier in the manner of TPC-H: eight tables, made from a seed, with NULLs where it has none."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa

REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE"]
NATIONS = [
    ("ALGERIA", 0), ("KENYA", 0), ("BRAZIL", 1), ("CANADA", 1), ("CHINA", 2), ("INDIA", 2), ("FRANCE", 3), ("GERMANY", 3),
]  # fmt: skip
SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY"]
MODES = ["AIR", "MAIL", "RAIL", "SHIP", "TRUCK"]
TYPES = ["ECONOMY BRASS", "PROMO STEEL", "PROMO TIN", "STANDARD BRASS", "SMALL COPPER"]
WORDS = ["green", "ivory", "almond", "special", "requests", "quick", "pending", "forest"]


def tables(seed: int = 7, orders: int = 300) -> dict[str, pa.Table]:
    """All tables by name."""
    chance = random.Random(seed)  # noqa: S311 - the same rows each time
    suppliers, parts, customers = 12, 40, 50

    def money(low: int, high: int) -> Decimal:
        return Decimal(chance.randrange(low * 100, high * 100)) / 100

    def words(count: int) -> str:
        return " ".join(chance.choice(WORDS) for _ in range(count))

    def day(first: dt.date, days: int) -> dt.date:
        return first + dt.timedelta(days=chance.randrange(days))

    made: dict[str, list[dict[str, Any]]] = {
        "region": [{"r_regionkey": key, "r_name": name} for key, name in enumerate(REGIONS)],
        "nation": [
            {"n_nationkey": key, "n_name": name, "n_regionkey": region} for key, (name, region) in enumerate(NATIONS)
        ],
        "supplier": [
            {
                "s_suppkey": key,
                "s_name": f"Supplier {key}",
                "s_nationkey": chance.randrange(8),
                "s_acctbal": money(-900, 9000),
                "s_comment": words(3),
            }
            for key in range(suppliers)
        ],
        "part": [
            {
                "p_partkey": key,
                "p_name": words(2),
                "p_mfgr": f"Manufacturer {key % 3}",
                "p_brand": f"Brand#{key % 5}",
                "p_type": chance.choice(TYPES),
                "p_size": chance.randrange(1, 20),
                "p_container": chance.choice(["SM BOX", "MED BAG", "LG CASE"]),
            }
            for key in range(parts)
        ],
        "customer": [
            {
                "c_custkey": key,
                "c_name": f"Customer {key}",
                "c_nationkey": chance.randrange(8),
                "c_phone": f"{chance.randrange(10, 18)}-{chance.randrange(1000)}",
                "c_acctbal": money(-900, 9000) if key % 9 else None,
                "c_mktsegment": chance.choice(SEGMENTS),
            }
            for key in range(customers)
        ],
        "partsupp": [
            {
                "ps_partkey": part,
                "ps_suppkey": (part + place * 5) % suppliers,
                "ps_availqty": chance.randrange(1, 1000),
                "ps_supplycost": money(1, 1000),
            }
            for part in range(parts)
            for place in range(2)
        ],
        "orders": [],
        "lineitem": [],
    }
    for key in range(orders):
        ordered = day(dt.date(1994, 1, 1), 900)
        made["orders"].append(
            {
                "o_orderkey": key,
                "o_custkey": chance.randrange(customers - 10),
                "o_orderstatus": chance.choice("FOP"),
                "o_totalprice": money(100, 50_000),
                "o_orderdate": ordered,
                "o_orderpriority": f"{chance.randrange(1, 6)}-LEVEL",
                "o_shippriority": 0,
                "o_comment": words(4),
            }
        )
        for line in range(chance.randrange(1, 6)):
            part = chance.randrange(parts)
            shipped = day(ordered, 120)
            made["lineitem"].append(
                {
                    "l_orderkey": key,
                    "l_partkey": part,
                    "l_suppkey": (part + chance.randrange(2) * 5) % suppliers,
                    "l_linenumber": line,
                    "l_quantity": Decimal(chance.randrange(1, 51)),
                    "l_extendedprice": money(900, 90_000),
                    "l_discount": Decimal(chance.randrange(11)) / 100,
                    "l_tax": Decimal(chance.randrange(9)) / 100,
                    "l_returnflag": chance.choice("ANR"),
                    "l_linestatus": chance.choice("FO"),
                    "l_shipdate": shipped,
                    "l_commitdate": day(ordered, 100),
                    "l_receiptdate": day(shipped, 30),
                    "l_shipmode": chance.choice(MODES),
                }
            )
    return {name: pa.Table.from_pylist(rows, schema=_schema(rows)) for name, rows in made.items()}


def _schema(rows: list[dict[str, Any]]) -> pa.Schema:
    kinds = {str: pa.string(), dt.date: pa.date32(), Decimal: pa.decimal128(15, 2), int: pa.int64()}
    return pa.schema([(name, kinds[type(value)]) for name, value in rows[1].items()])
