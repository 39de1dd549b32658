"""`penstock nexmark generate`: JSON lines, the events of a stream with the same options."""

from __future__ import annotations

import json

import pytest

from penstock.interfaces.cli.main import run


def lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    assert run(["nexmark", "generate", *arguments]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_events_are_printed_one_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    events = lines(capsys, "--events", "12345", "--seed", "7", "--rate", "1000")
    assert len(events) == 12_345
    assert [list(event) for event in (events[0], events[1], events[4])] == [
        ["event_type", "person", "dateTime"],
        ["event_type", "auction", "dateTime"],
        ["event_type", "bid", "dateTime"],
    ]
    bids = lines(capsys, "--events", "12345", "--seed", "7", "--rate", "1000", "--kind", "bid")
    assert bids == [event["bid"] for event in events if event["event_type"] == 2]
    assert events[12_344]["dateTime"] == "2015-07-15T00:00:12.344000Z"
    assert lines(capsys, "--events", "12345", "--seed", "8", "--rate", "1000") != events


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["nexmark", "generate", "--events", "0"]) == 2
    assert "--events" in capsys.readouterr().err


def test_verify_takes_known_queries_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["nexmark", "verify", "--query", "q24"]) == 2
    assert "q23" in capsys.readouterr().err
