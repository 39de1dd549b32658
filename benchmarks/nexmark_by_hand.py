"""Nexmark's queries as PySpark that a careful person would write, where Spark's own streaming can run them.

It cannot run aggregates of aggregates that change (q4, q6), rankings (q9, q19), distinct counts (q15, q16), and q5,
which joins hopping windows with their own maximum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORDS: Final = {
    "person": (
        "id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, "
        "dateTime TIMESTAMP, extra STRING"
    ),
    "auction": (
        "id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP, "
        "expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING"
    ),
    "bid": (
        "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING"
    ),
}
_SCHEMA: Final = (
    "event_type INT, "
    + ", ".join(
        f"{kind} STRUCT<{', '.join(part.replace(' ', ': ', 1) for part in columns.split(', '))}>"
        for kind, columns in RECORDS.items()
    )
    + ", dateTime TIMESTAMP"
)
# The number of a kind among the types of events.
_TYPES: Final = {kind: number for number, kind in enumerate(RECORDS)}
Relation = Callable[[str], Any]


def relations(spark: SparkSession, address: str, topic: str, most: int) -> Relation:
    """Reads a kind of events from the topic; each call is a reading of its own, as Spark has it."""
    from pyspark.sql import functions as f

    def read(kind: str) -> DataFrame:
        records = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", address)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", str(most))
            .load()
        )
        events = records.select(f.from_json(f.col("value").cast("string"), _SCHEMA).alias("e")).select("e.*")
        chosen = events.where(f.col("event_type") == _TYPES[kind]).select(f"{kind}.*")
        return chosen.withWatermark("dateTime", "4 seconds")

    return read


def by_hand(name: str, read: Relation, side_input: Any) -> tuple[DataFrame, str] | None:
    """A query and its output mode; None where Spark cannot run it."""
    made = _QUERIES.get(name)
    if made is None:
        return None
    if name == "q13":
        joined = read("bid").join(side_input, _expr("auction % 10000 = key"))
        return joined.select("auction", "bidder", "price", "dateTime", "value"), "append"
    found = made(read)
    return found if isinstance(found, tuple) else (found, "append")


def _expr(text: str) -> Any:
    from pyspark.sql import functions as f

    return f.expr(text)


def _windowed(frame: Any) -> Any:
    from pyspark.sql import functions as f

    return frame.withColumn("w", f.window("dateTime", "10 seconds"))


def _q3(read: Relation) -> Any:
    sellers = read("person").where("state IN ('OR', 'ID', 'CA')").alias("p")
    auctions = read("auction").where("category = 10").alias("a")
    return auctions.join(sellers, _expr("a.seller = p.id")).select("p.name", "p.city", "p.state", "a.id")


def _q7(read: Relation) -> Any:
    from pyspark.sql import functions as f

    highest = _windowed(read("bid")).groupBy("w").agg(f.max("price").alias("highest")).alias("m")
    # A stream may have one column of event time: the time of the bid becomes a plain one.
    bids = _windowed(read("bid")).withColumn("dateTime", f.timestamp_micros(f.unix_micros("dateTime"))).alias("b")
    return bids.join(highest, _expr("b.w = m.w AND b.price = m.highest")).select(
        "b.auction", "b.price", "b.bidder", "b.dateTime", "b.extra"
    )


def _q8(read: Relation) -> Any:
    persons = _windowed(read("person")).groupBy("id", "name", "w").count().alias("p")
    sellers = _windowed(read("auction")).groupBy("seller", "w").count().alias("a")
    return persons.join(sellers, _expr("p.id = a.seller AND p.w = a.w")).select("p.id", "p.name", "p.w.start")


def _q11(read: Relation) -> Any:
    from pyspark.sql import functions as f

    return read("bid").groupBy("bidder", f.session_window("dateTime", "10 seconds")).count()


def _q12(read: Relation) -> Any:
    from pyspark.sql import functions as f

    arrived = read("bid").select("bidder", f.current_timestamp().alias("arrived"))
    return arrived.groupBy("bidder", f.window("arrived", "10 seconds")).count(), "update"


def _q14(read: Relation) -> Any:
    from pyspark.sql import functions as f
    from pyspark.sql.udf import UserDefinedFunction
    from pyspark.util import PythonEvalType

    from penstock.interfaces.nexmark.functions import count_char

    # By its constructor: the decorator does not read annotations that are texts.
    counted = UserDefinedFunction(count_char, "BIGINT", "count_char", PythonEvalType.SQL_SCALAR_ARROW_UDF)
    hour = "hour(dateTime)"
    label = (
        f"CASE WHEN {hour} BETWEEN 8 AND 18 THEN 'dayTime' WHEN {hour} <= 6 OR {hour} >= 20 THEN 'nightTime' "
        "ELSE 'otherTime' END"
    )
    priced = read("bid").where("0.908 * price > 1000000 AND 0.908 * price < 50000000")
    return priced.select(
        "auction",
        "bidder",
        _expr("0.908 * price AS price"),
        _expr(f"{label} AS bidTimeType"),
        "dateTime",
        "extra",
        counted("extra", f.lit("c")).alias("c_counts"),
    )


def _q17(read: Relation) -> Any:
    ranks = ["price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000"]
    made = [
        _expr("count(*)"),
        *[_expr(f"count_if({rank})") for rank in ranks],
        *[_expr(f"{function}(price)") for function in ("min", "max", "avg", "sum")],
    ]
    return read("bid").groupBy("auction", _expr("date_format(dateTime, 'yyyy-MM-dd')")).agg(*made), "update"


def _q18(read: Relation) -> Any:
    last = "max_by(struct(price, channel, url, dateTime, extra), struct(dateTime, price))"
    return read("bid").groupBy("bidder", "auction").agg(_expr(last)), "update"


def _q20(read: Relation) -> Any:
    auctions = read("auction").where("category = 10").alias("a")
    return read("bid").alias("b").join(auctions, _expr("b.auction = a.id")).select("b.*", "a.*")


def _q21(read: Relation) -> Any:
    found = "regexp_extract(url, '(&|^)channel_id=([^&]*)', 2)"
    chosen = read("bid").where(f"lower(channel) IN ('apple', 'google', 'facebook', 'baidu') OR {found} <> ''")
    number = (
        "CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' "
        f"WHEN 'baidu' THEN '3' ELSE {found} END AS channel_id"
    )
    return chosen.selectExpr("auction", "bidder", "price", "channel", number)


def _q23(read: Relation) -> Any:
    persons, auctions = read("person").alias("p"), read("auction").alias("a")
    both = read("bid").alias("b").join(persons, _expr("b.bidder = p.id"))
    return both.join(auctions, _expr("b.bidder = a.seller")).select(
        "b.auction",
        "b.bidder",
        "b.price",
        "b.dateTime",
        "p.name",
        "p.city",
        "p.state",
        "a.id",
        "a.itemName",
        "a.category",
    )


_DIRECTORIES: Final = [f"split_part(url, '/', {place + 3}) AS dir{place}" for place in (1, 2, 3)]
_QUERIES: Final[dict[str, Callable[[Relation], Any]]] = {
    "q0": lambda read: read("bid").select("auction", "bidder", "price", "dateTime", "extra"),
    "q1": lambda read: read("bid").selectExpr("auction", "bidder", "0.908 * price AS price", "dateTime", "extra"),
    "q2": lambda read: read("bid").where("auction % 123 = 0").select("auction", "price"),
    "q3": _q3,
    "q7": _q7,
    "q8": _q8,
    "q10": lambda read: read("bid").selectExpr(
        "auction", "bidder", "price", "dateTime", "extra",
        "date_format(dateTime, 'yyyy-MM-dd') AS dt", "date_format(dateTime, 'HH:mm') AS hm",
    ),
    "q11": _q11,
    "q12": _q12,
    "q13": lambda read: read("bid"),
    "q14": _q14,
    "q17": _q17,
    "q18": _q18,
    "q20": _q20,
    "q21": _q21,
    "q22": lambda read: read("bid").selectExpr("auction", "bidder", "price", "channel", *_DIRECTORIES),
    "q23": _q23,
}  # fmt: skip
