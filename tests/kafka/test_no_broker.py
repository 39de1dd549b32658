"""A broker that is not there: every statement that needs it comes back, and says who does not answer."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

import penstock
from penstock.connectors import kafka_cluster
from penstock.errors import PenstockError
from penstock.runtime.kafka_broker import HOST, free_port
from tests.kafka.conftest import Cluster

# Each statement waits as long as it is told below: whoever needs minutes for all of them waits for something else.
pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

_ANSWER_S = 2.0


@pytest.fixture(params=["refuses", "is silent"])
def nobody(request: pytest.FixtureRequest) -> Iterator[str]:
    """An address where nobody listens, and one where somebody does and never answers."""
    if request.param == "refuses":
        yield f"{HOST}:{free_port()}"
        return
    with socket.create_server((HOST, 0)) as silent:
        yield f"{HOST}:{silent.getsockname()[1]}"


def test_statements_come_back_and_name_the_address(
    cluster: Cluster, db: penstock.Database, nobody: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SC31, C2: jobs, batch queries and rows of a statement; declaring a relation asks nobody."""
    monkeypatch.setattr(kafka_cluster, "ANSWER_S", _ANSWER_S)
    at = f"connector = 'kafka', topic = 'somewhere', bootstrap_servers = '{nobody}'"
    db.execute(f"""
        CREATE STREAM source (n INT) WITH ({at}, start = 'earliest');
        CREATE TABLE ended (n INT) WITH ({at}, start = 'earliest', 'end' = 'latest');
        CREATE SINK often (n INT) WITH ({at});
        CREATE SINK once (n INT) WITH ({at}, delivery = 'exactly_once');
        CREATE STREAM here (n INT) WITH (connector = 'topic');
    """)
    asked = {
        "CREATE MATERIALIZED VIEW v AS SELECT n FROM source": "SOURCE_UNAVAILABLE",
        "SELECT COUNT(*) FROM ended": "SOURCE_UNAVAILABLE",
        "INSERT INTO often SELECT n FROM here": "SINK_UNAVAILABLE",
        "INSERT INTO once SELECT n FROM here": "SINK_UNAVAILABLE",
        "INSERT INTO often VALUES (1)": "SINK_UNAVAILABLE",
        f"CREATE SINK made WITH ({at}, partitions = 2) AS SELECT n FROM here": "SINK_UNAVAILABLE",
    }
    for statement, condition in asked.items():
        with pytest.raises(PenstockError) as raised:
            db.execute(statement)
        assert raised.value.condition == condition, statement
        assert nobody in raised.value.message, statement
        assert raised.value.hint, statement
    # Nothing is left of what could not begin, and what has nothing to do with the broker goes on.
    assert db.sql("SELECT name FROM penstock.jobs").rows() == []
    db.execute("CREATE MATERIALIZED VIEW w AS SELECT n FROM here; INSERT INTO here VALUES (1)")
    db.settle(60)
    assert db.sql("SELECT n FROM w").rows() == [(1,)]
