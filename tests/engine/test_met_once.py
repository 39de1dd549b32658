"""Joins as of PROCTIME() with rows that change, as jobs: each row meets what is current when it comes, and stays (SC40, G16).
The breadth of queries is in tests/unit/stores/views, which needs no Spark."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.databases import Opened
from tests.engine.answers import check_change_log, in_order, read

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SCRIPT = """
CREATE STREAM orders (id INT, cur STRING);
CREATE TABLE rates (cur STRING, rate INT, PRIMARY KEY (cur) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
CREATE STREAM quotes (cur STRING, bid INT);
CREATE MATERIALIZED VIEW highest AS SELECT cur, MAX(bid) AS bid FROM quotes GROUP BY cur;
CREATE MATERIALIZED VIEW rated AS
SELECT o.id, r.rate FROM orders o LEFT JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r ON o.cur = r.cur;
CREATE MATERIALIZED VIEW sums AS
SELECT cur, COUNT(*) AS n, SUM(rate) AS total
FROM (SELECT o.cur, r.rate FROM orders o JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r ON o.cur = r.cur)
GROUP BY cur;
CREATE MATERIALIZED VIEW beside AS
SELECT o.id, h.bid FROM orders o JOIN highest FOR SYSTEM_TIME AS OF PROCTIME() AS h ON o.cur = h.cur;
CREATE SINK written WITH (connector = 'topic') AS
SELECT o.id, r.rate FROM orders o LEFT JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r ON o.cur = r.cur;
CREATE STREAM again (id INT, rate INT) WITH (connector = 'topic', topic = 'written');
CREATE MATERIALIZED VIEW read_back AS SELECT id, rate FROM again;
"""


def test_rows_meet_what_is_current_when_they_come(opened: Opened) -> None:
    """Also over a stop in the middle; a later rate, and one that is gone, change nothing of rows that came before."""
    db = opened()
    db.execute(SCRIPT)
    rates: dict[str, int] = {}
    bids: dict[str, int] = {}
    rated: list[tuple[int, int | None]] = []
    beside: list[tuple[int, int]] = []
    joined: list[tuple[str, int]] = []
    for step in range(4):
        for cur, rate in (("EUR", 10 + step), ("USD", 20 + step)) if step != 2 else (("CHF", 30),):
            db.append("rates", [{"cur": cur, "rate": rate}])
            rates[cur] = rate
        if step == 3:
            db.append("rates", [{"cur": "USD", "_op": "delete"}])
            del rates["USD"]
        db.append("quotes", [{"cur": "EUR", "bid": 7 * step % 5}])
        bids["EUR"] = max(bids.get("EUR", 0), 7 * step % 5)
        db.settle(180)
        orders = [(10 * step + place, cur) for place, cur in enumerate(("EUR", "USD", "CHF", None))]
        db.append("orders", [{"id": id_, "cur": cur} for id_, cur in orders])
        db.settle(180)
        rated += [(id_, rates.get(cur or "")) for id_, cur in orders]
        beside += [(id_, bids[cur]) for id_, cur in orders if cur in bids]
        joined += [(cur, rates[cur]) for _, cur in orders if cur in rates]
        assert read(db, "rated") == in_order(rated), f"after step {step}"
        assert read(db, "beside") == in_order(beside), f"after step {step}"
        counts = Counter(cur for cur, _ in joined)
        sums = [(cur, n, sum(rate for other, rate in joined if other == cur)) for cur, n in counts.items()]
        assert read(db, "sums") == in_order(sums), f"after step {step}"
        assert read(db, "read_back") == in_order(rated), f"after step {step}"
        if step == 1:
            db.close()
            db = opened()
    assert {change.op for change in check_change_log(db, "rated", key=())} == {"insert"}


CHANGING = """
CREATE TABLE accounts (id INT, cur STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
CREATE TABLE rates (cur STRING, rate INT, PRIMARY KEY (cur) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
CREATE MATERIALIZED VIEW users AS SELECT cur, COUNT(*) AS n FROM accounts GROUP BY cur;
CREATE MATERIALIZED VIEW rated AS
SELECT a.id, a.cur, r.rate FROM accounts a LEFT JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r ON a.cur = r.cur;
CREATE MATERIALIZED VIEW sums AS
SELECT r.rate, COUNT(*) AS n FROM accounts a JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r ON a.cur = r.cur GROUP BY r.rate;
CREATE MATERIALIZED VIEW used AS
SELECT u.cur, u.n, r.rate FROM users u JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r ON u.cur = r.cur;
CREATE TABLE kept (id INT, cur STRING, rate INT, PRIMARY KEY (id, cur) NOT ENFORCED)
WITH (connector = 'topic', changes = 'upsert');
INSERT INTO kept
SELECT a.id, r.cur, r.rate FROM accounts a JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r ON a.cur = r.cur;
"""
# Of each step the rates that change, then the accounts that do; None: it is deleted.
STEPS: list[tuple[dict[str, int | None], dict[int, str | None]]] = [
    ({"EUR": 10, "USD": 20}, {1: "EUR", 2: "USD", 3: "CHF"}),
    ({"EUR": 11, "CHF": 30}, {2: "EUR", 4: "CHF"}),
    ({"USD": None, "EUR": 12}, {1: None, 3: "USD", 4: "EUR"}),
    ({"USD": 25}, {1: "USD", 2: None}),
]


@pytest.mark.slow
def test_rows_in_front_that_change_meet_anew(opened: Opened) -> None:
    """What a row gave goes when it is replaced or deleted; a rate that changes touches no row that is there (SC40, G16)."""
    db = opened()
    db.execute(CHANGING)
    rates: dict[str, int] = {}
    rated: dict[int, tuple[str, int | None]] = {}
    used: dict[str, tuple[int, int | None]] = {}
    for step, (changed, accounts) in enumerate(STEPS):
        for cur, rate in changed.items():
            db.append("rates", [{"cur": cur, "_op": "delete"} if rate is None else {"cur": cur, "rate": rate}])
            rates = {**rates, cur: rate} if rate is not None else {c: r for c, r in rates.items() if c != cur}
        db.settle(180)
        for id_, of in accounts.items():
            db.append("accounts", [{"id": id_, "_op": "delete"} if of is None else {"id": id_, "cur": of}])
            rated.pop(id_, None)
            if of is not None:
                rated[id_] = (of, rates.get(of))
            users = Counter(cur for cur, _ in rated.values())
            db.settle(180)
            used = {cur: used[cur] if used.get(cur, (0,))[0] == n else (n, rates.get(cur)) for cur, n in users.items()}
        assert read(db, "rated") == in_order((id_, *met) for id_, met in rated.items()), f"after step {step}"
        met_rates = Counter(rate for _, rate in rated.values() if rate is not None)
        assert read(db, "sums") == in_order(met_rates.items()), f"after step {step}"
        there = [(cur, n, rate) for cur, (n, rate) in used.items() if rate is not None]
        assert read(db, "used") == in_order(there), f"after step {step}"
        kept = [(id_, cur, rate) for id_, (cur, rate) in rated.items() if rate is not None]
        assert in_order(db.select_once("SELECT id, cur, rate FROM kept").rows()) == in_order(kept), f"after step {step}"
        if step == 1:
            db.close()
            db = opened()
    check_change_log(db, "rated", key=())


BEHIND_JOINS = """
CREATE STREAM orders (id INT, cur STRING, at TIMESTAMP, WATERMARK FOR at AS at);
CREATE STREAM payments (order_id INT, amount INT, at TIMESTAMP, WATERMARK FOR at AS at);
CREATE TABLE accounts (id INT, bank INT, cur STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
CREATE TABLE banks (id INT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
CREATE TABLE rates (cur STRING, rate INT, PRIMARY KEY (cur) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
CREATE MATERIALIZED VIEW paid AS
SELECT o.id, p.amount, r.rate FROM orders o JOIN payments p ON o.id = p.order_id
LEFT JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r ON o.cur = r.cur;
CREATE MATERIALIZED VIEW soon AS
SELECT id, amount, rate FROM orders AS o, payments AS p JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r USING (cur)
WHERE id = order_id AND p.at BETWEEN o.at AND o.at + INTERVAL '10' SECOND;
CREATE MATERIALIZED VIEW held AS
SELECT b.name, r.rate FROM accounts a LEFT JOIN banks b ON a.bank = b.id
JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r ON a.cur = r.cur;
CREATE MATERIALIZED VIEW awaited AS
SELECT o.id, p.amount, r.rate FROM orders o LEFT JOIN payments p ON o.id + 1 = p.order_id
LEFT JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r ON o.cur = r.cur;
"""


@pytest.mark.slow
def test_joins_in_front_need_no_subquery(opened: Opened) -> None:
    """Pairs of streams meet once and stay; pairs of rows that change meet anew when they are other ones (SC40, G16)."""
    db = opened()
    db.execute(BEHIND_JOINS)
    rates: dict[str, int] = {}
    orders: dict[int, tuple[str, int]] = {}
    paid: list[tuple[int, int, int | None]] = []
    soon: list[tuple[int, int, int]] = []
    accounts: dict[int, tuple[int, str]] = {}
    banks: dict[int, str] = {}
    held: dict[int, tuple[str | None, int | None]] = {}
    amounts: dict[int, list[int | None]] = {}
    awaited: dict[tuple[int, int | None], int | None] = {}
    for step in range(4):
        rates |= {"EUR": 10 + step} | ({"USD": 20 + step} if step else {})
        db.append("rates", [{"cur": cur, "rate": rate} for cur, rate in rates.items()])
        db.settle(180)
        orders |= {step: ("EUR", 60 * step), 10 + step: ("USD", 60 * step + 1)}
        given = [{"id": id_, "cur": orders[id_][0], "at": moment(orders[id_][1])} for id_ in (step, 10 + step)]
        payments = [(step, 60 * step + 5), (10 + step, 60 * step + 30), (step - 1, 60 * step + 7)]
        db.append("orders", given)
        db.append("payments", [{"order_id": of, "amount": at, "at": moment(at)} for of, at in payments])
        changed = {step: (step % 2, "EUR"), 9: (1, "USD")}
        db.append("accounts", [{"id": id_, "bank": bank, "cur": cur} for id_, (bank, cur) in changed.items()])
        accounts |= changed
        if step == 2:
            db.append("banks", [{"id": 1, "name": "one"}])
            banks[1] = "one"
        db.settle(180)
        for of, at in payments:
            if of in orders:
                cur, ordered = orders[of]
                paid.append((of, at, rates.get(cur)))
                soon += [(of, at, rates[cur])] if cur in rates and ordered <= at <= ordered + 10 else []
        for id_, (bank, cur) in accounts.items():
            if held.get(id_, ("", 0))[0] != banks.get(bank):
                held[id_] = (banks.get(bank), rates.get(cur))
        assert read(db, "paid") == in_order(paid), f"after step {step}"
        assert read(db, "soon") == in_order(soon), f"after step {step}"
        for of, at in payments:
            amounts.setdefault(of, []).append(at)
        pairs = [(id_, amount) for id_ in orders for amount in amounts.get(id_ + 1) or [None]]
        awaited = {pair: awaited.get(pair, rates.get(orders[pair[0]][0])) for pair in pairs}
        assert read(db, "awaited") == in_order((*pair, rate) for pair, rate in awaited.items()), f"after step {step}"
        there = [(name, rate) for name, rate in held.values() if rate is not None]
        assert read(db, "held") == in_order(there), f"after step {step}"
        if step == 1:
            db.close()
            db = opened()
    assert {change.op for change in check_change_log(db, "paid", key=())} == {"insert"}
    check_change_log(db, "held", key=())
    check_change_log(db, "awaited", key=())


def moment(seconds: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


BESIDE_TABLES = """
CREATE STREAM orders (id INT, cur STRING);
CREATE STREAM quotes (cur STRING, bid INT);
CREATE TABLE rates (cur STRING, rate INT, PRIMARY KEY (cur) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
CREATE TABLE places (cur STRING, place STRING) WITH (connector = 'file', path = '{path}', format = 'csv');
CREATE MATERIALIZED VIEW highest AS SELECT cur, MAX(bid) AS bid FROM quotes GROUP BY cur;
CREATE MATERIALIZED VIEW placed AS
SELECT o.id, r.rate, p.place, h.bid FROM orders o JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r ON o.cur = r.cur
LEFT JOIN places FOR SYSTEM_TIME AS OF PROCTIME() AS p ON p.cur = o.cur
LEFT JOIN highest FOR SYSTEM_TIME AS OF PROCTIME() AS h ON h.cur = o.cur;
CREATE SINK written WITH (connector = 'topic') AS
SELECT o.id, r.rate, p.place FROM orders o LEFT JOIN rates FOR SYSTEM_TIME AS OF PROCTIME() AS r ON o.cur = r.cur
JOIN places FOR SYSTEM_TIME AS OF PROCTIME() AS p ON p.cur = o.cur;
CREATE STREAM again (id INT, rate INT, place STRING) WITH (connector = 'topic', topic = 'written');
CREATE MATERIALIZED VIEW read_back AS SELECT id, rate, place FROM again;
"""


@pytest.mark.slow
def test_bounded_tables_behind_what_rows_meet_once(opened: Opened, tmp_path: Path) -> None:
    """G16, G21: a chain of such joins with a table between them; a row of several matches is there for each of them."""
    path = tmp_path / "places.csv"
    places = [("EUR", "Paris"), ("EUR", "Rome"), ("CHF", "Bern")]
    path.write_text("cur,place\n" + "".join(f"{cur},{place}\n" for cur, place in places))
    db = opened()
    db.execute(BESIDE_TABLES.format(path=path))
    rates: dict[str, int] = {}
    placed: list[tuple[int, int, str | None, int | None]] = []
    written: list[tuple[int, int | None, str]] = []
    for step in range(3):
        for cur in ("EUR", "USD", "CHF")[: step + 1]:
            rates[cur] = 10 * step + len(rates)
            db.append("rates", [{"cur": cur, "rate": rates[cur]}])
        db.append("quotes", [{"cur": "EUR", "bid": step}])
        db.settle(180)
        orders = [(10 * step + number, known) for number, known in enumerate(("EUR", "USD", "CHF", None))]
        db.append("orders", [{"id": id_, "cur": known} for id_, known in orders])
        db.settle(180)
        for id_, known in orders:
            found = [place for other, place in places if other == known]
            bid = step if known == "EUR" else None
            rate = rates.get(known or "")
            if rate is not None:
                placed += [(id_, rate, place, bid) for place in found] or [(id_, rate, None, bid)]
            written += [(id_, rate, place) for place in found]
        assert read(db, "placed") == in_order(placed), f"after step {step}"
        assert read(db, "read_back") == in_order(written), f"after step {step}"
        if step == 1:
            db.close()
            db = opened()
    assert {change.op for change in check_change_log(db, "placed", key=())} == {"insert"}


CHAINS = """
CREATE STREAM orders (id INT, cur STRING, at TIMESTAMP, WATERMARK FOR at AS at);
CREATE STREAM payments (order_id INT, bank STRING);
CREATE TABLE history (cur STRING, rate INT, at TIMESTAMP, PRIMARY KEY (cur) NOT ENFORCED, WATERMARK FOR at AS at)
WITH (connector = 'topic', changes = 'upsert');
CREATE TABLE zones (cur STRING, zone STRING, PRIMARY KEY (cur) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
CREATE TABLE fees (bank STRING, fee INT, PRIMARY KEY (bank) NOT ENFORCED) WITH (connector = 'topic', changes = 'upsert');
CREATE TABLE places (zone STRING, bank STRING) WITH (connector = 'file', path = '{path}', format = 'csv');
CREATE MATERIALIZED VIEW charged AS
SELECT o.id, h.rate, p.bank, f.fee FROM orders o LEFT JOIN history FOR SYSTEM_TIME AS OF o.at AS h ON h.cur = o.cur
JOIN payments p ON p.order_id = o.id LEFT JOIN fees FOR SYSTEM_TIME AS OF PROCTIME() AS f ON f.bank = p.bank;
CREATE MATERIALIZED VIEW offered AS
SELECT o.id, z.zone, l.bank, f.fee FROM orders o JOIN zones FOR SYSTEM_TIME AS OF PROCTIME() AS z ON z.cur = o.cur
LEFT JOIN places FOR SYSTEM_TIME AS OF PROCTIME() AS l ON l.zone = z.zone
LEFT JOIN fees FOR SYSTEM_TIME AS OF PROCTIME() AS f ON f.bank = l.bank;
"""


@pytest.mark.slow
def test_temporal_joins_one_after_another(opened: Opened, tmp_path: Path) -> None:
    """G16, G21: a late version makes other rows of those in front, which meet the fee of their batch; a table over a file
    stands between two joins as of PROCTIME()."""
    path = tmp_path / "places.csv"
    places = {"west": ["A", "B"], "east": ["B"]}
    path.write_text("zone,bank\n" + "".join(f"{zone},{bank}\n" for zone, banks in places.items() for bank in banks))
    db = opened()
    db.execute(CHAINS.format(path=path))
    history: dict[str, list[tuple[int, int]]] = {"EUR": [], "USD": []}
    orders: dict[int, tuple[str, int]] = {}
    payments: list[tuple[int, str]] = []
    charged: dict[tuple[object, ...], int | None] = {}
    offered: list[tuple[int, str, str | None, int | None]] = []
    for step in range(4):
        fees = {"A": 10 * step, "B": 10 * step + 1} if step else {"A": 5}
        zones = {"EUR": "west" if step % 2 else "east", "USD": "north"}
        db.append("fees", [{"bank": bank, "fee": fee} for bank, fee in fees.items()])
        db.append("zones", [{"cur": cur, "zone": zone} for cur, zone in zones.items()])
        db.settle(180)
        came = {10 * step: ("EUR", 100 * step), 10 * step + 1: ("USD", 100 * step), 10 * step + 2: ("CHF", 0)}
        versions = [("EUR", step, 100 * step - 150), ("USD", step, 100 * step)]  # the first one is late
        paid = [(10 * step, "A"), (10 * step - 9, "B"), (10 * step - 9, "B")]
        db.append("orders", [{"id": id_, "cur": cur, "at": moment(at)} for id_, (cur, at) in came.items()])
        db.append("history", [{"cur": cur, "rate": rate, "at": moment(at)} for cur, rate, at in versions])
        db.append("payments", [{"order_id": of, "bank": bank} for of, bank in paid])
        db.settle(180)
        orders |= came
        payments += paid
        for cur, rate, at in versions:
            history[cur].append((at, rate))
        there: list[tuple[object, ...]] = []
        for place, (of, bank) in enumerate(payments):
            if of in orders:
                cur, at = orders[of]
                version = max((each for each in history.get(cur, []) if each[0] <= at), default=(None, None))
                there.append((of, version[1], bank, place))
        charged = {row: charged.get(row, fees.get(str(row[2]))) for row in there}
        assert read(db, "charged") == in_order((*row[:3], fee) for row, fee in charged.items()), f"after step {step}"
        for id_, (cur, _) in came.items():
            if cur in zones:
                banks: list[str | None] = [*places.get(zones[cur], [])] or [None]
                offered += [(id_, zones[cur], bank, fees.get(bank or "")) for bank in banks]
        assert read(db, "offered") == in_order(offered), f"after step {step}"
        if step == 1:
            db.close()
            db = opened()
    check_change_log(db, "charged", key=())
