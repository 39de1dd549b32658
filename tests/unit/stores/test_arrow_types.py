"""The Arrow type of each SQL type is the one that Spark expects for its Spark type."""

from __future__ import annotations

import pytest
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_type

from penstock.errors import PenstockError
from penstock.stores.arrow_types import arrow_type
from penstock.types import SPARK_NAMES, Field, SqlType

SPARK_TYPES: dict[str, spark.DataType] = {
    "STRING": spark.StringType(),
    "BOOLEAN": spark.BooleanType(),
    "TINYINT": spark.ByteType(),
    "SMALLINT": spark.ShortType(),
    "INT": spark.IntegerType(),
    "BIGINT": spark.LongType(),
    "DECIMAL(20, 0)": spark.DecimalType(20, 0),
    "FLOAT": spark.FloatType(),
    "DOUBLE": spark.DoubleType(),
    "BINARY": spark.BinaryType(),
    "DATE": spark.DateType(),
    "TIMESTAMP": spark.TimestampType(),
    "VARIANT": spark.VariantType(),
}


@pytest.mark.parametrize("name", [name for name in SPARK_NAMES if name != "INTERVAL"])
def test_plain_types_are_those_of_spark(name: str) -> None:
    expected = to_arrow_type(SPARK_TYPES[SqlType(name).spark()], timezone="UTC")
    assert arrow_type(SqlType(name)).equals(expected, check_metadata=True)


def test_nested_types_are_those_of_spark() -> None:
    inner = SqlType("STRUCT", fields=(Field("a b", SqlType("UBIGINT")), Field("t", SqlType("TIMESTAMP"))))
    sql_type = SqlType("MAP", elements=(SqlType("STRING"), SqlType("ARRAY", elements=(inner,))))
    struct = spark.StructType().add("a b", spark.DecimalType(20, 0)).add("t", spark.TimestampType())
    expected = to_arrow_type(spark.MapType(spark.StringType(), spark.ArrayType(struct)), timezone="UTC")
    assert arrow_type(sql_type).equals(expected, check_metadata=True)
    assert str(arrow_type(sql_type)) == str(expected)


def test_an_interval_has_none() -> None:
    with pytest.raises(PenstockError) as caught:
        arrow_type(SqlType("ARRAY", elements=(SqlType("INTERVAL"),)))
    assert caught.value.condition == "CLAUSE_NOT_YET"
