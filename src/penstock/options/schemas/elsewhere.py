"""Connectors and formats that other systems have and this version has not: refused by name, not as unknown."""

from __future__ import annotations

from typing import Final

_BY_KAFKA: Final = "bring the records into Kafka and read them with connector = 'kafka'"
_BY_DEBEZIUM: Final = "read the changes from Kafka with format = 'debezium-json'"
_BY_FILES: Final = "read or write files with connector = 'file'"
_BY_HTTP: Final = "send rows to a service with connector = 'http'"

NOT_YET_CONNECTORS: Final = {
    **dict.fromkeys(
        ("pulsar", "kinesis", "pubsub", "google_pubsub", "nats", "mqtt", "rabbitmq", "fluvio", "sqs"), _BY_KAFKA
    ),
    **dict.fromkeys(
        ("mysql-cdc", "postgres-cdc", "mongodb-cdc", "sqlserver-cdc", "oracle-cdc", "tidb-cdc", "citus-cdc", "db2-cdc"),
        _BY_DEBEZIUM,
    ),
    **dict.fromkeys(
        ("s3", "s3_v2", "gcs", "azblob", "webhdfs", "snowflake_s3", "hdfs", "iceberg", "hudi", "paimon", "hive"),
        _BY_FILES,
    ),
    **dict.fromkeys(
        (
            "redis",
            "elasticsearch",
            "elasticsearch-7",
            "opensearch",
            "mongodb",
            "cassandra",
            "scylladb",
            "dynamodb",
            "hbase-2.2",
            "clickhouse",
            "bigquery",
            "snowflake",
            "redshift",
            "doris",
            "starrocks",
            "mysql",
            "sqlserver",
            "oracle",
            "firehose",
        ),
        _BY_HTTP,
    ),
    **dict.fromkeys(
        ("websocket", "sse", "polling_http", "server_sent_events", "socket", "rate", "load_generator", "fs", "preview"),
        "feed an embedded topic through the Python API instead",
    ),
}
# Spark's and Flink's testing sources have a near relative here.
NOT_YET_CONNECTORS["rate"] = "use connector = 'impulse' or 'datagen'"
NOT_YET_CONNECTORS["load_generator"] = "use connector = 'nexmark' or 'datagen'"

NOT_YET_FORMATS: Final = {
    **dict.fromkeys(
        ("canal-json", "maxwell-json", "ogg-json", "canal", "maxwell", "debezium_mongo"), "use format = 'debezium-json'"
    ),
    **dict.fromkeys(
        ("debezium-avro", "debezium-avro-confluent"), "let the connector write JSON and use format = 'debezium-json'"
    ),
    **dict.fromkeys(
        ("orc", "msgpack", "bson", "xml", "thrift", "yaml", "json_sr", "kafka", "delimited"),
        "use json, csv, avro or parquet",
    ),
}
