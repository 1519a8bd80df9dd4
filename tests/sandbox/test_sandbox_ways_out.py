"""Every way out that we know of, tried from inside, with a control that finds the canary from outside."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eval_core.domain.compression import Outcome

HOSTILE = Path(__file__).parent / "attacks" / "hostile.py"
loader = importlib.util.spec_from_file_location("hostile", HOSTILE)
hostile = importlib.util.module_from_spec(loader)
loader.loader.exec_module(hostile)

# What the same code reaches as a plain child of this process: the attempts are real.
ANYBODY = [
    "key_in_the_environment", "key_in_the_environment_of_any_process", "key_in_an_inherited_descriptor",
    "key_in_a_descriptor_of_another_process", "file_of_the_host", "home_of_the_host", "git_config_of_the_tree",
    "dot_env_of_the_tree", "credentials_below_the_root_of_the_tree", "probes_of_the_tree",
    "pip_conf_of_the_environment", "link_in_the_tree_that_leads_out",
    "dot_dot_out_of_the_tree", "shared_memory_file_of_the_host", "shared_memory_segment_of_the_host",
    "loopback_of_the_host_over_tcp", "loopback_of_the_host_over_udp", "abstract_socket_of_the_host",
    "path_socket_of_the_host", "netlink_socket", "write_into_the_tree", "write_into_a_folder_of_the_host",
    "write_into_the_environment", "signal_a_process_of_the_host", "socket_of_another_run", "see_other_processes",
    "variables_of_the_workflow", "kernel_keyring", "ptrace_at_all", "file_handle_that_ignores_mounts",
]  # fmt: skip
ONLY_ROOT = [
    "key_in_the_memory_of_another_process", "key_through_process_vm_readv", "ptrace_another_process",
    "take_a_descriptor_of_another_process", "file_through_the_root_of_another_process", "packet_socket", "raw_socket",
    "become_root", "join_groups", "new_network_namespace", "new_namespace_by_clone", "join_another_namespace",
    "raise_the_priority", "kernel_log", "mount_the_new_way",
]  # fmt: skip
WHERE_THE_KERNEL_HAS_IT = ["vsock", "system_call_of_the_32_bit_abi", "io_uring", "fault_handling_in_user_space"]


@pytest.fixture(scope="module")
def inside(attack):
    done = attack("hostile:compress", call={"config": {**attack.reach, "tree": "/subject"}})
    assert done.outcome is Outcome.OK, done
    return json.loads(done.state[0]["content"])


@pytest.fixture(scope="module")
def outside(stage, tree, python, secret):
    names = [*ANYBODY, *WHERE_THE_KERNEL_HAS_IT, *(ONLY_ROOT if os.geteuid() == 0 else [])]
    with Path(stage["file"]).open("rb") as inherited:
        ran = subprocess.run(
            [str(python), str(HOSTILE)],
            input=json.dumps({"config": {**stage, "tree": str(tree)}, "names": names}).encode(),
            env={"COMPRESSION_EVAL_KEY": secret},
            pass_fds=[inherited.fileno()],
            capture_output=True,
            check=True,
        )
    return json.loads(ran.stdout)


@pytest.mark.parametrize("name", sorted(hostile.ATTEMPTS))
def test_the_sandbox_holds_against(name, inside, secret):
    assert not inside[name]["hit"], inside[name]["said"]
    assert secret not in inside[name]["said"]


@pytest.mark.parametrize("name", ANYBODY)
def test_the_same_attempt_succeeds_without_a_sandbox(name, outside, secret):
    assert outside[name]["hit"], outside[name]["said"]


@pytest.mark.skipif(os.geteuid() != 0, reason="the control needs the rights that a privileged evaluator has")
@pytest.mark.parametrize("name", ONLY_ROOT)
def test_the_same_attempt_succeeds_for_root_without_a_sandbox(name, outside):
    assert outside[name]["hit"], outside[name]["said"]


def test_the_secret_is_what_the_controls_found(outside, secret):
    readers = [name for name in outside if name.startswith(("key_in_the_env", "file_of", "git_", "dot_env", "probes_"))]
    assert len(readers) >= 5
    # Somebody else may run these tests at the same time, and any process is any process.
    assert {outside[name]["said"] for name in readers if "any_process" not in name} == {secret}


@pytest.mark.parametrize("name", WHERE_THE_KERNEL_HAS_IT)
def test_a_wide_kernel_interface_is_shut_though_this_kernel_offers_it(name, inside, outside):
    if not outside[name]["hit"]:
        pytest.skip(f"not offered by this kernel even outside: {outside[name]['said']}")
    assert not inside[name]["hit"]


def test_a_foreign_system_call_is_death_not_an_error(inside, sandbox):
    if not sandbox.level.startswith("bwrap") or sys.platform != "linux" or not hostile.X86:
        pytest.skip("the filter is bubblewrap's, and the foreign calls are x86's")
    for name in ("system_call_of_the_32_bit_abi", "system_call_of_the_x32_abi"):
        assert "ended with" in inside[name]["said"]
        assert int(inside[name]["said"].split()[-1]) & 0x7F == 31  # SIGSYS
