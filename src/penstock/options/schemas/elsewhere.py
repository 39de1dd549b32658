"""Connectors, formats and options that other systems have and this version has not: refused by name, not as unknown."""

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

NOT_YET_DATABASES: Final = {
    "mysql": "MySQL",
    "mariadb": "MariaDB",
    "tidb": "TiDB",
    "oceanbase": "OceanBase",
    "oracle": "Oracle",
    "sqlserver": "SQL Server",
    "db2": "Db2",
    "derby": "Derby",
    "h2": "H2",
    "sqlite": "SQLite",
    "clickhouse": "ClickHouse",
    "snowflake": "Snowflake",
    "redshift": "Redshift",
    "trino": "Trino",
    "cratedb": "CrateDB",
    "crate": "CrateDB",
    "dm": "Dameng",
}

_LEAVE_OUT: Final = "leave it out"
_COMMITS: Final = "leave it out; what a batch has written is there as soon as the batch is done"
_TIME_PARTITIONS: Final = "compute a column such as day and give it in partition_by"
_COMPACTION: Final = "leave it out, and say how large files become with rollover_size"
_WHOLE_TABLE: Final = "leave it out; a table that is looked up is read whole, and again after refresh"
_OTHER_LOGIN: Final = "log in with sasl.mechanism = 'SCRAM-SHA-512' or 'PLAIN', or with a certificate"
_ALIGNMENT: Final = "leave it out; idle_timeout says when a silent partition no longer holds the watermark back"

# By connector, and for all under '': the beginning of a key, and what to do instead.
NOT_YET_OPTIONS: Final = {
    "": {
        "scan.watermark.alignment.": _ALIGNMENT,
        "scan.watermark.emit.": _ALIGNMENT,
        "source_rate_limit": "limit a batch with max_rows_per_batch",
        "sink_rate_limit": "limit a batch with max_rows_per_batch",
        "sink_decouple": _LEAVE_OUT,
        "commit_checkpoint_interval": _LEAVE_OUT,
    },
    "file": {
        "sink.partition-commit.policy.class": _COMMITS,
        "partition.default-name": _LEAVE_OUT,
        "partition.time-extractor.class": _TIME_PARTITIONS,
        "time_partition_pattern": _TIME_PARTITIONS,
        "partitioning.": _TIME_PARTITIONS,
        "auto-compaction": _COMPACTION,
        "compaction.": _COMPACTION,
        "sink.rolling-policy.": "begin new files with rollover_size, rollover_rows or rollover_interval",
        "sink.shuffle-by-partition.": _LEAVE_OUT,
        "shuffle_by_partition.": _LEAVE_OUT,
        "source.report-statistics": _LEAVE_OUT,
        "filename.strategy": "name files with filename_prefix and filename_suffix",
        "file_naming.strategy": "name files with filename_prefix and filename_suffix",
        "storage.": _LEAVE_OUT,
    },
    "delta": {
        "time_partition_pattern": _TIME_PARTITIONS,
        "partitioning.": _TIME_PARTITIONS,
        "filename.": _LEAVE_OUT,
        "file_naming.": _LEAVE_OUT,
        "storage.": _LEAVE_OUT,
        "rollover_seconds": _LEAVE_OUT,
        "rolling_policy.": _LEAVE_OUT,
        "target_file_size": _LEAVE_OUT,
    },
    "kafka": {
        "privatelink.": _LEAVE_OUT,
        **{
            f"{prefix}sasl.{family}": _OTHER_LOGIN
            for prefix in ("kafka.", "properties.")
            for family in ("kerberos.", "oauthbearer.", "login.connect.", "login.read.")
        },
    },
    "postgres": {
        "connection.": _LEAVE_OUT,
        "scan.partition.": _WHOLE_TABLE,
        "scan.auto-commit": _LEAVE_OUT,
        "lookup.": _WHOLE_TABLE,
        "filter.handling.policy": _LEAVE_OUT,
    },
}
NOT_YET_OPTIONS["upsert-kafka"] = NOT_YET_OPTIONS["kafka"]
