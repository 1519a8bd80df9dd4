"""Workspaces of the small task, in a real sandbox."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tasks_small import FIXTURE, LEDGER, write_task

from eval_core.base.errors import UserError
from eval_core.sandbox.isolation import SandboxChoice, detect
from eval_core.tasks.task import Task, load_task
from eval_core.tasks.task_workspace import Built, Workspace, build


@pytest.fixture(scope="session")
def sandbox() -> SandboxChoice:
    try:
        return detect()
    except UserError as exc:
        if os.environ.get("CI") == "true":
            pytest.fail(f"workspaces need a sandbox: {exc}")
        pytest.skip(f"no sandbox: {exc}")


@pytest.fixture(scope="session")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return load_task(write_task(tmp_path_factory.mktemp("quay")), FIXTURE, LEDGER)


@pytest.fixture(scope="session")
def built(task: Task, sandbox: SandboxChoice) -> Built:
    return asyncio.run(build(task, sandbox))


Use = Callable[[Callable[[Workspace], Awaitable[Any]]], Any]


@pytest.fixture
def in_workspace(built: Built) -> Use:
    """Do something in a fresh workspace."""

    def use(action: Callable[[Workspace], Awaitable[Any]]) -> Any:
        async def run() -> Any:
            async with built.open() as workspace:
                return await action(workspace)

        return asyncio.run(run())

    return use
