"""A method of a Java object as a column, which Spark generates code for. That way is not public API of Spark's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession


def java_call(
    spark: SparkSession, target: Any, method: str, type_: Any, *arguments: Column, deterministic: bool = True
) -> Column:
    """What the method returns for each row, in a type of Spark's JVM.

    It is called with NULLs too, but not where a number or a boolean is NULL: then it is NULL itself.

    A call that is not deterministic stays where it is put: Spark moves no condition past it.
    """
    from pyspark.sql.classic.column import Column as ClassicColumn

    jvm: Any = spark._jvm  # noqa: SLF001 - there is no public way to the JVM
    sql = jvm.org.apache.spark.sql
    expressions = sql.catalyst.expressions
    given = jvm.java.util.ArrayList()
    for argument in arguments:
        given.add(sql.classic.ExpressionUtils.expression(argument._jc))  # noqa: SLF001
    scala = jvm.scala.jdk.javaapi.CollectionConverters
    call = expressions.objects.Invoke(
        expressions.Literal.fromObject(target, sql.types.ObjectType(target.getClass())),
        method,
        type_,
        scala.asScala(given).toSeq(),
        scala.asScala(jvm.java.util.ArrayList()).toSeq(),
        False,  # NULL for NULL
        True,  # may be NULL
        deterministic,
    )
    return ClassicColumn(sql.classic.ExpressionUtils.column(call))
