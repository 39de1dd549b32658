"""What a session would be started with, without starting one."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.spark.logs import open_output, write_logging
from penstock.spark.session import SparkSettings, cores, jvm_pid, log_file, session_running, spark_options


def test_options(tmp_path: Path) -> None:
    options = spark_options(SparkSettings(tmp_path, driver_memory_bytes=3 * 1024**3, parallelism=1))
    assert options["spark.driver.memory"] == "3072m"
    assert options["spark.sql.shuffle.partitions"] == "1"
    assert options["spark.master"] == f"local[{cores()}]"
    assert options["spark.driver.bindAddress"] == options["spark.driver.host"] == "127.0.0.1"
    assert (tmp_path / "log4j2.properties").as_uri() in options["spark.driver.extraJavaOptions"]
    evolution = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
    assert options[evolution] == "false"
    assert spark_options(SparkSettings(tmp_path, named_sources=True))[evolution] == "true"
    assert spark_options(SparkSettings(tmp_path))["spark.driver.memory"] == "2048m"
    assert spark_options(SparkSettings(tmp_path, master="spark://127.0.0.1:7077"))["spark.master"].startswith("spark:")


def test_workers_of_a_cluster_run_as_the_driver_does(tmp_path: Path) -> None:
    options = spark_options(SparkSettings(tmp_path, master="local-cluster[2,1,1024]"))
    assert "-Duser.timezone=UTC" in options["spark.executor.extraJavaOptions"]
    assert "-Darrow.enable_null_check_for_get=false" in options["spark.driver.extraJavaOptions"]
    assert "spark.executor.extraJavaOptions" not in spark_options(SparkSettings(tmp_path))


def test_no_session_before_one_is_asked_for() -> None:
    assert not session_running()
    assert jvm_pid() is None
    assert log_file() is None


def test_logs_stay_bounded(tmp_path: Path) -> None:
    write_logging(tmp_path / "log4j2.properties", tmp_path / "a$b")
    text = (tmp_path / "log4j2.properties").read_text()
    assert f"fileName = {tmp_path}/a$$b/spark.log\n" in text
    assert "SizeBasedTriggeringPolicy" in text
    output = tmp_path / "spark.out"
    output.write_bytes(b"x" * (16 * 1024**2 + 1))
    descriptor = open_output(tmp_path)
    os.write(descriptor, b"new")
    os.close(descriptor)
    assert output.read_bytes() == b"new"
    assert (tmp_path / "spark.out.1").stat().st_size > 16 * 1024**2
