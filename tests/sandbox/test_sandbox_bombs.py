"""Subjects that break things or lie: the run ends soon, with the right outcome, and nothing stays behind."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import json
import os
import select
from pathlib import Path

import pytest

from eval_core.domain.call import Completion, Draw, Usage
from eval_core.domain.compression import Outcome
from eval_core.sandbox.gateway import Gateway, GatewayLimits

pytestmark = pytest.mark.long
SHORT = [{"role": "user", "content": "short"}]


def said(done):
    assert done.outcome is Outcome.OK, done
    return json.loads(done.state[0]["content"])


def outlive(namespace: int) -> list[str]:
    """Return what lives on in one process namespace (that of one run, and of no other) though its end is waited for."""
    left = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "ns" / "pid").stat().st_ino == namespace:
                handle = os.pidfd_open(int(process.name))
                left += [] if select.select([handle], [], [], 20)[0] else [process.name]
                os.close(handle)
    return left


def test_a_fork_bomb_stops_at_the_limit_and_its_children_end_with_it(attack):
    report = said(attack("bombs:fork_bomb"))
    assert report["error"] == errno.EAGAIN
    assert report["children"] < 128


def test_a_memory_bomb_meets_a_limit(attack):
    assert said(attack("bombs:memory_bomb")) == "MemoryError"


def test_memory_taken_by_many_processes_is_counted_together(attack):
    done = attack("bombs:memory_bomb_of_many", memory_mb=512)
    assert (done.outcome, done.detail) == (Outcome.TARGET_ERROR, "the compressor reached its memory limit of 512 MB")


@pytest.mark.parametrize("name", ["memfd_bomb", "memfd_bomb_of_many", "memfd_in_transit", "mapped_memory_bomb"])
def test_shared_memory_counts_and_the_limit_that_was_reached_is_named(attack, name):
    done = attack(f"bombs:{name}", memory_mb=512, timeout_s=20 if "memfd" in name or not attack.counted else 4)
    if attack.counted:
        assert done.outcome is Outcome.TARGET_ERROR  # without a control group there is no shared memory at all
        return
    assert (done.outcome, done.detail) == (Outcome.TARGET_ERROR, "the compressor reached its memory limit of 512 MB")


@pytest.mark.parametrize("device", [False, True])
def test_shared_memory_that_is_hardly_mapped_counts_or_cannot_be_had(attack, device):
    done = attack("bombs:unmapped_shared_memory", call={"device": device}, memory_mb=512)
    assert done.outcome is Outcome.TARGET_ERROR
    assert ("raised PermissionError" if attack.counted else "reached its memory limit of 512 MB") in done.detail


def test_pages_cannot_be_given_to_a_pipe(attack):
    assert said(attack("bombs:pages_in_pipes")) == [-1, errno.EPERM]


@pytest.mark.parametrize("how", ["splice", "sendfile"])
def test_pages_of_a_file_that_sockets_keep_count_or_cannot_be_had(attack, how):
    done = attack("bombs:pages_in_sockets", call={"how": how}, memory_mb=512)
    assert done.outcome is Outcome.TARGET_ERROR
    assert ("[Errno 22] Invalid argument" if attack.counted else "reached its memory limit of 512 MB") in done.detail


def test_huge_pages_that_sockets_keep_count_or_cannot_be_had(attack):
    done = attack("bombs:huge_pages_in_sockets", memory_mb=512)
    assert done.outcome is Outcome.TARGET_ERROR
    assert ("Protocol not available" if attack.counted else "reached its memory limit of 512 MB") in done.detail


NAMES = ["x kB", "\x85VmPTE: -9 kB"]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name.encode("unicode_escape").decode())
def test_no_name_of_a_process_hides_its_memory(attack, name):
    done = attack("bombs:memory_behind_a_name", call={"name": name}, memory_mb=512)
    assert (done.outcome, done.detail) == (Outcome.TARGET_ERROR, "the compressor reached its memory limit of 512 MB")


def test_memory_of_threads_whose_leader_is_gone_counts(attack):
    done = attack("bombs:memory_behind_a_dead_leader", memory_mb=512)
    assert (done.outcome, done.detail) == (Outcome.TARGET_ERROR, "the compressor reached its memory limit of 512 MB")


@pytest.mark.parametrize("to", ["processes", "threads"])
def test_memory_that_is_handed_on_all_the_time_counts(attack, to):
    done = attack("bombs:memory_handed_on", call={"to": to}, memory_mb=512)
    assert (done.outcome, done.detail) == (Outcome.TARGET_ERROR, "the compressor reached its memory limit of 512 MB")


def test_few_sockets_hold_little_where_they_are_counted_by_their_number(attack):
    held = said(attack("bombs:few_large_buffers"))
    assert held <= 8 * 2**20 or not attack.counted


@pytest.mark.parametrize("family", ["unix", "tcp"])
def test_buffers_of_sockets_are_limited(attack, family):
    done = attack("bombs:socket_buffers", call={"family": family}, memory_mb=256)
    assert (done.outcome, done.detail) == (Outcome.TARGET_ERROR, "the compressor reached its memory limit of 256 MB")


def test_page_tables_count(attack):
    program = 'import bombs; print(\'{"type": "ready"}\', flush=True); input(); input(); bombs.touches_page_tables()'
    done = attack(None, command=["python3", "-c", program], memory_mb=256)
    assert (done.outcome, done.detail) == (Outcome.TARGET_ERROR, "the compressor reached its memory limit of 256 MB")


@pytest.mark.parametrize(
    ("which", "limit"),
    [
        ("memory", "the memory limit is 2048 MB"),
        ("descriptors", "the limit is 512 open files"),
        ("processes", "the limit is 128 processes and threads"),
        ("threads", "the limit is 128 processes and threads"),
        ("scratch", "a file, and each scratch folder, can hold 64 MiB"),
    ],
)
def test_a_limit_that_an_honest_program_meets_is_named(attack, which, limit):
    done = attack("bombs:raises_at_a_limit", call={"which": which})
    assert done.outcome is Outcome.TARGET_ERROR
    assert limit in done.detail


def test_processor_time_that_is_used_up_is_named(attack):
    if attack.counted:
        pytest.skip("process one, as it is there, is sent no signal but the last")
    done = attack("bombs:raises_at_a_limit", call={"which": "processor"})
    assert (done.outcome, done.detail) == (Outcome.TARGET_ERROR, "the compressor used up its processor time")


def test_memory_that_nobody_holds_cannot_be_had(attack):
    taken, number = said(attack("bombs:sysv_bomb"))
    assert (taken, number) == (0, errno.EPERM)
    assert said(attack("bombs:sysv_objects")) == [[-1, errno.EPERM], [-1, errno.EPERM]]


def test_shared_memory_files_end_with_their_scratch(attack):
    taken, number = said(attack("bombs:posix_shm_bomb"))
    assert (taken <= 16, number) == (True, errno.ENOSPC)


def test_descriptors_end_at_the_limit_and_the_result_still_comes(attack):
    done = attack("bombs:descriptor_exhaustion")
    assert (done.outcome, done.state[0]["content"][-4:]) == (Outcome.OK, f" {errno.EMFILE}]")


def test_inotify_instances_that_are_used_up_are_missed_by_nobody_outside(attack):
    assert attack("bombs:watches").outcome is Outcome.OK
    handle = ctypes.CDLL(None).inotify_init()
    assert handle >= 0
    os.close(handle)


def test_arguments_and_environments_beyond_measure_are_refused_by_the_kernel(attack):
    assert set(said(attack("bombs:huge_environment"))) == {errno.E2BIG}


def test_a_disk_bomb_fills_only_its_own_scratch(attack):
    report = said(attack("bombs:disk_bomb"))
    assert set(report) == {"/tmp", "/home/subject", "/dev/shm"}
    for total, number in report.values():
        assert number == errno.ENOSPC
        assert total <= 64 * 2**20


def test_a_file_beyond_the_limit_cannot_even_be_announced(attack):
    assert said(attack("bombs:one_large_file")) == errno.EFBIG


def test_an_output_bomb_is_ended_and_only_its_beginning_kept(attack, capfd):
    done = attack("bombs:output_bomb")
    assert (done.outcome, done.detail) == (Outcome.TARGET_ERROR, "the compressor printed more than 16 MiB")
    assert len(done.output) <= 64 * 1024
    assert capfd.readouterr() == ("", "")


def test_workflow_commands_never_reach_the_log(attack, capfd):
    done = attack("bombs:workflow_commands")
    assert (done.outcome, done.state) == (Outcome.OK, SHORT)
    assert "::set-env" in done.output
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["ignores_term", "busy_loop"])
def test_what_will_not_end_is_ended(attack, name):
    done = attack(f"bombs:{name}", timeout_s=4)
    assert (done.outcome, done.detail) == (Outcome.TARGET_ERROR, "compressing took longer than 4 s")


def test_a_daemon_does_not_outlive_the_run(attack):
    namespace = said(attack("bombs:daemonises"))
    assert namespace != Path("/proc/self/ns/pid").stat().st_ino
    assert outlive(namespace) == []


def test_it_has_a_session_of_its_own_and_so_no_terminal_of_ours(attack):
    """Inside, the leader of a session that was begun outside is nobody: 0."""
    assert said(attack("bombs:tells_its_session")) != 0


def test_a_thread_that_is_left_running_holds_nothing_up(attack):
    assert attack("bombs:thread_left_running").state == SHORT


def test_a_compressor_that_kills_itself_is_told_as_such_or_finds_that_it_cannot(attack):
    done = attack("bombs:kills_itself")
    assert done.outcome in (Outcome.OK, Outcome.TARGET_ERROR)
    if done.outcome is Outcome.OK:
        assert said(done) == "survived as process one"
    else:
        assert "SIGKILL" in done.detail


def test_a_signal_to_everybody_reaches_nobody_outside(attack, stage):
    attack("bombs:kills_everybody")
    assert Path(f"/proc/{stage['victim']}").exists()


def test_a_crash_is_the_compressor_s_result(attack):
    done = attack("bombs:crashes")
    assert done.outcome is Outcome.TARGET_ERROR
    assert "SIGSEGV" in done.detail


def test_bottomless_recursion_is_the_compressor_s_result(attack):
    done = attack("bombs:deep_recursion", memory_mb=256, timeout_s=4)
    assert done.outcome is Outcome.TARGET_ERROR


def test_a_result_printed_to_stdout_is_output_and_no_result(attack):
    done = attack("bombs:fake_result_on_stdout")
    assert (done.outcome, done.state) == (Outcome.OK, SHORT)
    assert "forged" in done.output


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("garbage_on_the_channel", "wrote over the result channel: not JSON"),
        ("flood_on_the_channel", "wrote over the result channel: not JSON"),
        ("forged_frame_of_another_run", "not a frame of this run"),
        ("announces_four_gigabytes", "announced a result of 4,294,967,295 bytes"),
        ("half_a_frame", "the compressor's process ended by itself with status 0"),
        ("huge_result", "more than the 16,777,216 that are accepted"),
        ("deeply_nested_result", "JSON cannot express"),
    ],
)
def test_a_channel_that_is_misused_gives_a_named_error(attack, name, text):
    done = attack(f"bombs:{name}")
    assert done.outcome is Outcome.TARGET_ERROR
    assert text in done.detail


def test_a_channel_that_is_closed_from_inside_ends_with_the_time_at_the_latest(attack):
    done = attack("bombs:closes_everything", timeout_s=4)
    assert done.outcome is Outcome.TARGET_ERROR
    assert "took longer than 4 s" in done.detail or "closed the result channel" in done.detail


def test_links_and_fifos_are_never_opened_from_outside(attack):
    assert attack("bombs:links_and_fifos_at_home").state == SHORT


def test_the_limits_are_set_and_hard(attack):
    report = said(attack("bombs:limits"))
    assert report["CORE"] == [0, 0]
    assert report["NPROC"] == [128, 128]
    assert report["AS"] == [2**31, 2**31]
    soft, hard = report.pop("CPU")
    assert hard == soft + 1  # the second in which the signal that names the limit is sent
    assert all(soft == hard >= 0 for soft, hard in report.values())


@pytest.mark.parametrize(
    ("mode", "outcome", "text"),
    [
        ("exit", Outcome.SETUP_ERROR, "importing at_import raised SystemExit"),
        ("hard", Outcome.SETUP_ERROR, "ended by itself with status 0"),
        ("hang", Outcome.SETUP_ERROR, "took longer than 4 s"),
        ("stdout", Outcome.OK, ""),
        ("trap", Outcome.OK, ""),
    ],
)
def test_damage_at_import_is_contained(attack, mode, outcome, text):
    done = attack("at_import:compress", files={"mode": mode}, timeout_s=4 if mode == "hang" else 20)
    assert done.outcome is outcome, done
    assert text in done.detail


def test_the_gateway_decides_what_is_asked_and_what_it_cost(attack):
    done = attack("bombs:asks_for_more", llm="required")
    report = said(done)
    assert report == {
        "other model": 200, "image": 403, "function": 200, "provider's tool": 200, "functions": 403,
        "unknown field": 400, "end": 200,
    }  # fmt: skip
    assert done.use.calls == 4
    assert done.use.cost_usd == pytest.approx(0.004)


def test_claims_of_use_time_and_score_are_not_believed(attack):
    done = attack("bombs:claims_things", llm="required")
    assert done.outcome is Outcome.OK
    assert (done.use.input_tokens, done.use.cost_usd) == (100, 0.001)
    assert done.seconds > 0


def test_overspending_ends_at_the_cap(attack):
    done = attack("bombs:overspends", llm="required", limits=GatewayLimits(requests=3))
    assert done.outcome is Outcome.TARGET_ERROR
    assert done.use.calls == 3


def test_another_run_s_token_is_worth_nothing(attack):
    async def never(call):
        return Completion("x", Usage(), "m", 0.0)

    other = Gateway(model="m", complete=never, draw=Draw())
    assert said(attack("bombs:replays_a_token", llm="required", call={"token": other.token})) == [401, 401, 200]


def test_half_open_requests_do_not_stop_an_honest_one(attack):
    assert said(attack("bombs:floods_the_gateway", llm="required")) == [40, 200]


def test_the_gateway_is_no_proxy(attack):
    line, status = said(attack("bombs:smuggles_in_a_header", llm="required"))
    assert "400" in line
    assert status == 200


def test_attacks_side_by_side_do_not_share_a_limit(attack):
    async def both():
        return await asyncio.gather(*(asyncio.to_thread(attack, "bombs:fork_bomb") for _ in range(3)))

    counts = [said(done)["children"] for done in asyncio.run(both())]
    assert min(counts) > 60
