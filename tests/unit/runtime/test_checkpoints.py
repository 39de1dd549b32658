"""The checkpoint coordinator: SC14, K1 to K6, K13, K15, K16, DEC13."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from penstock.clock import ManualClock
from penstock.errors import ResolutionError, RuntimeFailure
from penstock.runtime.checkpoints import CheckpointCoordinator, CheckpointInfo, CheckpointStats, Snapshot

SOURCE, WINDOWS = "kafka_source_0", "window_aggregator"
OFFSETS = {"offset": 12345, "partition": 0}
STATE = {"windows": 5, "watermark": 1000}


@pytest.fixture
def coordinator() -> Iterator[CheckpointCoordinator]:
    with CheckpointCoordinator() as made:
        made.register_participant(SOURCE)
        made.register_participant(WINDOWS)
        yield made


def complete(coordinator: CheckpointCoordinator) -> int:
    number = coordinator.trigger_checkpoint()
    coordinator.acknowledge_checkpoint(SOURCE, number, OFFSETS)
    coordinator.acknowledge_checkpoint(WINDOWS, number, STATE)
    return number


def eventually(reached: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < until
        time.sleep(0.002)


def test_sc14_k4_complete_after_the_second_of_two_acknowledgements(coordinator: CheckpointCoordinator) -> None:
    number = coordinator.trigger_checkpoint()
    assert coordinator.acknowledge_checkpoint(SOURCE, number, OFFSETS) is False
    before = coordinator.last_completed_checkpoint
    assert coordinator.acknowledge_checkpoint(WINDOWS, number, STATE) is True
    coordinator.wait_for_checkpoint(number, timeout_ms=0)
    assert (before, coordinator.last_completed_checkpoint) == (None, number)
    assert coordinator.recover_from_checkpoint(number) == {SOURCE: OFFSETS, WINDOWS: STATE}


def test_k16_dec13_the_stats_have_no_dangling_checkpoint(coordinator: CheckpointCoordinator) -> None:
    number = complete(coordinator)
    assert coordinator.get_stats() == CheckpointStats(
        total=1, completed=1, failed=0, participants=2, last_checkpoint_id=number
    )


def test_k15_a_second_acknowledgement_of_one_operator_completes_nothing(coordinator: CheckpointCoordinator) -> None:
    number = coordinator.trigger_checkpoint()
    coordinator.acknowledge_checkpoint(SOURCE, number, OFFSETS)
    assert coordinator.acknowledge_checkpoint(SOURCE, number, {"offset": 99}) is False
    assert coordinator.get_stats().completed == 0
    coordinator.acknowledge_checkpoint(WINDOWS, number, STATE)
    assert coordinator.recover_from_checkpoint(number)[SOURCE] == OFFSETS


def test_k15_participants_come_and_go(coordinator: CheckpointCoordinator) -> None:
    assert coordinator.participants == (SOURCE, WINDOWS)
    with pytest.raises(ResolutionError, match=f"{SOURCE} is registered already"):
        coordinator.register_participant(SOURCE)
    coordinator.unregister_participant(SOURCE)
    assert coordinator.get_stats().participants == 1
    number = coordinator.trigger_checkpoint()
    assert coordinator.acknowledge_checkpoint(WINDOWS, number, STATE) is True
    with pytest.raises(ResolutionError, match=f"{SOURCE} takes no part in checkpoints"):
        coordinator.unregister_participant(SOURCE)


def test_an_operator_takes_part_from_the_next_checkpoint_on(coordinator: CheckpointCoordinator) -> None:
    number = coordinator.trigger_checkpoint()
    coordinator.register_participant("late")
    with pytest.raises(ResolutionError, match=f"late takes no part in checkpoint {number}"):
        coordinator.acknowledge_checkpoint("late", number, {})
    with pytest.raises(ResolutionError, match="takes no part"):
        coordinator.decline_checkpoint("late", number, "no")
    coordinator.acknowledge_checkpoint(SOURCE, number, OFFSETS)
    assert coordinator.acknowledge_checkpoint(WINDOWS, number, STATE) is True


def test_k4_a_failed_operator_leaves_the_checkpoint_before_the_last(coordinator: CheckpointCoordinator) -> None:
    first = complete(coordinator)
    second = coordinator.trigger_checkpoint()
    coordinator.acknowledge_checkpoint(SOURCE, second, OFFSETS)
    coordinator.decline_checkpoint(WINDOWS, second, "disk full")
    assert coordinator.acknowledge_checkpoint(WINDOWS, second, STATE) is False
    assert coordinator.last_completed_checkpoint == first
    for call in (coordinator.wait_for_checkpoint, coordinator.recover_from_checkpoint):
        with pytest.raises(RuntimeFailure) as refused:
            call(second)
        assert refused.value.condition == "UNKNOWN_CHECKPOINT"
        assert refused.value.message == f"checkpoint {second} did not complete: operator {WINDOWS}: disk full"
        assert refused.value.hint == f"the last complete one is {first}"
    assert coordinator.get_stats() == CheckpointStats(2, 1, 1, 2, first)


def test_an_operator_that_leaves_unacknowledged_fails_the_checkpoint(coordinator: CheckpointCoordinator) -> None:
    one = coordinator.trigger_checkpoint()
    coordinator.acknowledge_checkpoint(SOURCE, one, OFFSETS)
    coordinator.unregister_participant(SOURCE)
    assert coordinator.acknowledge_checkpoint(WINDOWS, one, STATE) is True
    two = coordinator.trigger_checkpoint()
    coordinator.unregister_participant(WINDOWS)
    with pytest.raises(RuntimeFailure, match=f"operator {WINDOWS} has left"):
        coordinator.wait_for_checkpoint(two)


def test_k5_numbers_strictly_increase_over_failures_too(coordinator: CheckpointCoordinator) -> None:
    numbers = [complete(coordinator)]
    numbers.append(coordinator.trigger_checkpoint())
    coordinator.decline_checkpoint(SOURCE, numbers[-1], "no")
    numbers += [complete(coordinator), complete(coordinator)]
    assert numbers == sorted(set(numbers))


def test_k5_numbers_are_given_once_to_many_threads(coordinator: CheckpointCoordinator) -> None:
    numbers: list[int] = []
    threads = [
        threading.Thread(target=lambda: numbers.extend(coordinator.trigger_checkpoint() for _ in range(50)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 201))


def test_k6_waiting_returns_on_completion(coordinator: CheckpointCoordinator) -> None:
    number = coordinator.trigger_checkpoint()
    done = threading.Event()

    def wait() -> None:
        coordinator.wait_for_checkpoint(number, timeout_ms=10_000)
        done.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    coordinator.acknowledge_checkpoint(SOURCE, number, OFFSETS)
    assert not done.wait(0.02)
    coordinator.acknowledge_checkpoint(WINDOWS, number, STATE)
    waiter.join(60)
    assert done.is_set()


def test_k6_waiting_ends_with_the_timeout_and_names_who_is_missing(coordinator: CheckpointCoordinator) -> None:
    number = coordinator.trigger_checkpoint()
    coordinator.acknowledge_checkpoint(SOURCE, number, OFFSETS)
    before = time.monotonic()
    with pytest.raises(TimeoutError, match=f"not complete after 30 ms; it waits for {WINDOWS}"):
        coordinator.wait_for_checkpoint(number, timeout_ms=30)
    assert 0.03 <= time.monotonic() - before < 60


def test_k6_an_unknown_number_is_told(coordinator: CheckpointCoordinator) -> None:
    calls: list[Callable[[], object]] = [
        lambda: coordinator.wait_for_checkpoint(77),
        lambda: coordinator.recover_from_checkpoint(77),
        lambda: coordinator.acknowledge_checkpoint(SOURCE, 77, {}),
        lambda: coordinator.decline_checkpoint(SOURCE, 77, "no"),
    ]
    for call in calls:
        with pytest.raises(RuntimeFailure, match="there is no checkpoint 77") as refused:
            call()
        assert (refused.value.condition, refused.value.hint) == ("UNKNOWN_CHECKPOINT", "none is complete yet")


def test_k7_a_pending_one_cannot_be_recovered_from(coordinator: CheckpointCoordinator) -> None:
    number = coordinator.trigger_checkpoint()
    with pytest.raises(RuntimeFailure, match=f"is not complete: it waits for {SOURCE}, {WINDOWS}"):
        coordinator.recover_from_checkpoint(number)


def test_k7_only_the_last_ones_are_kept() -> None:
    with CheckpointCoordinator(retain=2) as coordinator:
        coordinator.register_participant("one")
        for offset in range(4):
            number = coordinator.trigger_checkpoint()
            coordinator.acknowledge_checkpoint("one", number, {"offset": offset})
        assert [each.id for each in coordinator.list_checkpoints()] == [3, 4]
        assert coordinator.recover_from_checkpoint(3) == {"one": {"offset": 2}}
        with pytest.raises(RuntimeFailure, match="there is no checkpoint 2"):
            coordinator.recover_from_checkpoint(2)
        assert coordinator.get_stats().completed == 4


def test_failures_are_told_for_a_while_and_do_not_pile_up() -> None:
    with CheckpointCoordinator(retain=2) as coordinator:
        coordinator.register_participant("one")
        for _ in range(5):
            coordinator.decline_checkpoint("one", coordinator.trigger_checkpoint(), "no")
        assert [(each.id, each.state) for each in coordinator.list_checkpoints()] == [(4, "failed"), (5, "failed")]
        assert coordinator.get_stats() == CheckpointStats(5, 0, 5, 1, None)


def test_a_snapshot_is_what_it_was_when_it_was_acknowledged(coordinator: CheckpointCoordinator) -> None:
    number = coordinator.trigger_checkpoint()
    state = {"offset": 1}
    coordinator.acknowledge_checkpoint(SOURCE, number, state)
    state["offset"] = 2
    coordinator.acknowledge_checkpoint(WINDOWS, number, STATE)
    assert coordinator.recover_from_checkpoint(number)[SOURCE] == {"offset": 1}


def test_one_that_is_overtaken_has_failed(coordinator: CheckpointCoordinator) -> None:
    slow = coordinator.trigger_checkpoint()
    fast = complete(coordinator)
    with pytest.raises(RuntimeFailure, match=f"did not complete: checkpoint {fast} has overtaken it"):
        coordinator.wait_for_checkpoint(slow)
    assert coordinator.last_completed_checkpoint == fast
    assert coordinator.get_stats() == CheckpointStats(2, 1, 1, 2, fast)


def test_one_that_takes_too_long_has_failed() -> None:
    clock = ManualClock()
    with CheckpointCoordinator(checkpoint_timeout_seconds=60, clock=clock) as coordinator:
        coordinator.register_participant("one")
        coordinator.trigger_checkpoint()
        clock.advance(seconds=59)
        assert coordinator.list_checkpoints()[0].state == "pending"
        clock.advance(seconds=1)
        assert coordinator.list_checkpoints()[0].reason == "not complete after 60 s"


def test_k3_every_operator_is_listed_with_its_acknowledgement(coordinator: CheckpointCoordinator) -> None:
    number = coordinator.trigger_checkpoint()
    coordinator.acknowledge_checkpoint(WINDOWS, number, STATE)
    (told,) = coordinator.list_checkpoints()
    assert (told.id, told.state, told.completed_us) == (number, "pending", None)
    assert told.operators == {SOURCE: False, WINDOWS: True}
    coordinator.acknowledge_checkpoint(SOURCE, number, OFFSETS)
    (told,) = coordinator.list_checkpoints()
    assert told.state == "completed"
    assert told.completed_us is not None
    assert told.completed_us >= told.started_us


def test_k2_a_barrier_reaches_every_operator_which_acknowledges_there() -> None:
    with CheckpointCoordinator() as coordinator:
        seen: list[tuple[str, int]] = []
        for name in ("a", "b"):

            def barrier(number: int, name: str = name) -> None:
                seen.append((name, number))
                coordinator.acknowledge_checkpoint(name, number, {"from": name})

            coordinator.register_participant(name, barrier)
        number = coordinator.trigger_checkpoint()
        assert seen == [("a", number), ("b", number)]
        assert coordinator.recover_from_checkpoint(number) == {"a": {"from": "a"}, "b": {"from": "b"}}


def test_k4_an_operator_that_raises_at_the_barrier_fails_the_checkpoint() -> None:
    def broken(number: int) -> None:
        raise OSError("disk full")

    with CheckpointCoordinator() as coordinator:
        coordinator.register_participant("a", broken)
        number = coordinator.trigger_checkpoint()
        with pytest.raises(RuntimeFailure, match="operator a: OSError: disk full"):
            coordinator.wait_for_checkpoint(number)


def test_dec13_nothing_is_triggered_before_somebody_takes_part() -> None:
    with CheckpointCoordinator() as coordinator:
        with pytest.raises(RuntimeFailure, match="no operator takes part") as refused:
            coordinator.trigger_checkpoint()
        assert refused.value.condition == "JOB_STATE"
        assert coordinator.get_stats().total == 0


def test_k1_k13_the_thread_triggers_at_its_interval_once_somebody_takes_part_and_stops() -> None:
    times: list[float] = []
    coordinator = CheckpointCoordinator(0.05)

    def barrier(number: int) -> None:
        times.append(time.monotonic())
        coordinator.acknowledge_checkpoint("one", number, {})

    time.sleep(0.12)
    assert coordinator.get_stats().total == 0
    registered = time.monotonic()
    coordinator.register_participant("one", barrier)
    eventually(lambda: len(times) >= 3)
    coordinator.shutdown()
    stats = coordinator.get_stats()
    assert stats.total == stats.completed == len(times)
    assert all(later - earlier >= 0.05 for earlier, later in zip([registered, *times], times, strict=False))
    assert "penstock-checkpoints" not in {thread.name for thread in threading.enumerate()}
    time.sleep(0.12)
    assert coordinator.get_stats().total == stats.total


def test_k1_a_longer_interval_triggers_less_often() -> None:
    often = CheckpointCoordinator(0.02, backend=Batches())
    with often, CheckpointCoordinator(0.3, backend=Batches()) as rarely:
        eventually(lambda: rarely.get_stats().total >= 3)
        assert often.get_stats().total > rarely.get_stats().total


def test_k13_the_thread_waits_for_a_pending_one_and_gives_it_up_in_time() -> None:
    with CheckpointCoordinator(0.01, checkpoint_timeout_seconds=1.0) as coordinator:
        coordinator.register_participant("one")
        eventually(lambda: coordinator.get_stats().total == 1)
        time.sleep(0.1)
        assert coordinator.get_stats().total == 1
        eventually(lambda: coordinator.get_stats().total == 2)
        assert coordinator.get_stats().failed >= 1


def test_k13_the_thread_goes_on_after_an_error() -> None:
    backend = Batches()
    backend.broken = 2
    with CheckpointCoordinator(0.01, backend=backend) as coordinator:
        eventually(lambda: coordinator.get_stats().completed >= 2)
    assert backend.broken == 0


def test_k13_shutdown_wakes_who_waits_and_ends_it() -> None:
    coordinator = CheckpointCoordinator(60)
    coordinator.register_participant("one")
    number = coordinator.trigger_checkpoint()
    failures: list[str] = []

    def wait() -> None:
        try:
            coordinator.wait_for_checkpoint(number)
        except RuntimeFailure as failure:
            failures.append(failure.message)

    waiter = threading.Thread(target=wait)
    waiter.start()
    coordinator.shutdown()
    coordinator.shutdown()
    waiter.join(60)
    assert failures == [f"checkpoint {number} did not complete: the coordinator was shut down"]
    with pytest.raises(RuntimeFailure, match="is shut down"):
        coordinator.trigger_checkpoint()


def test_an_interval_of_nothing_is_refused() -> None:
    with pytest.raises(ResolutionError, match="more than zero"):
        CheckpointCoordinator(0)
    with pytest.raises(ResolutionError, match="1 or more"):
        CheckpointCoordinator(retain=0)


class Batches:
    """A backend: batches of a job, complete as soon as they are triggered unless held."""

    def __init__(self) -> None:
        self.made = [CheckpointInfo(7, "completed", 0, 1)]
        self.broken = 0
        self.hold = False
        self.recovered: list[int] = []

    def trigger(self) -> int:
        if self.broken:
            self.broken -= 1
            raise ConnectionResetError("no batch")
        number = self.made[-1].id + 1
        self.made.append(CheckpointInfo(number, "pending" if self.hold else "completed", 0, None))
        return number

    def wait(self, checkpoint_id: int, timeout_s: float) -> None:
        state = {each.id: each.state for each in self.made}.get(checkpoint_id)
        if state is None:
            raise RuntimeFailure("UNKNOWN_CHECKPOINT", f"there is no checkpoint {checkpoint_id}")
        if state == "pending":
            raise TimeoutError(f"{timeout_s > 0}")

    def recover(self, checkpoint_id: int) -> Mapping[str, Snapshot]:
        self.wait(checkpoint_id, 0)
        self.recovered.append(checkpoint_id)
        return {"trades": {"offset": checkpoint_id * 10}}

    def list(self) -> Sequence[CheckpointInfo]:
        return self.made


def test_a_backend_numbers_completes_and_recovers() -> None:
    backend = Batches()
    with CheckpointCoordinator(backend=backend) as coordinator:
        assert coordinator.trigger_checkpoint() == 8
        coordinator.wait_for_checkpoint(8)
        assert coordinator.recover_from_checkpoint(7) == {"trades": {"offset": 70}}
        assert backend.recovered == [7]
        assert coordinator.get_stats() == CheckpointStats(2, 2, 0, 0, 8)
        with pytest.raises(RuntimeFailure, match="no checkpoint 99"):
            coordinator.wait_for_checkpoint(99)
        with pytest.raises(RuntimeFailure, match="no checkpoint 99"):
            coordinator.recover_from_checkpoint(99)


def test_with_a_backend_both_it_and_the_operators_must_be_done() -> None:
    backend = Batches()
    backend.hold = True
    with CheckpointCoordinator(backend=backend) as coordinator:
        coordinator.register_participant("mine")
        number = coordinator.trigger_checkpoint()
        with pytest.raises(TimeoutError, match="it waits for mine"):
            coordinator.wait_for_checkpoint(number, timeout_ms=1)
        coordinator.acknowledge_checkpoint("mine", number, {"x": 1})
        with pytest.raises(TimeoutError, match="True"):
            coordinator.wait_for_checkpoint(number)
        assert coordinator.last_completed_checkpoint == 7
        backend.made[-1] = CheckpointInfo(number, "completed", 0, 1)
        coordinator.wait_for_checkpoint(number)
        assert coordinator.recover_from_checkpoint(number) == {"trades": {"offset": 80}, "mine": {"x": 1}}
        assert coordinator.last_completed_checkpoint == number


def test_with_a_backend_a_declined_checkpoint_is_not_recovered_from() -> None:
    backend = Batches()
    with CheckpointCoordinator(backend=backend) as coordinator:
        coordinator.register_participant("mine")
        number = coordinator.trigger_checkpoint()
        coordinator.decline_checkpoint("mine", number, "no")
        with pytest.raises(RuntimeFailure, match="did not complete: operator mine: no"):
            coordinator.recover_from_checkpoint(number)
        assert backend.recovered == []
        assert coordinator.last_completed_checkpoint == 7
