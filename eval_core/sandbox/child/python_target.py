"""Import, build and call the compressor, with errors that say what to change."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import errno
import importlib
import inspect
import json
import os
import pkgutil
import resource
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any


class SetupError(Exception):
    """The compressor cannot be imported, built or called as the spec says."""


_LAUNCHER = str(Path(__file__).resolve().parent)


def _below(file: str, *folders: str) -> bool:
    return any(file.startswith(folder + os.sep) for folder in folders)


def _place(exc: BaseException) -> str:
    """Return where it was raised: in the user's own code if it passed through there, never in the launcher."""
    places, trace = [], exc.__traceback__
    while trace is not None:
        places.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    places = [place for place in places if not _below(place[0], _LAUNCHER) and not place[0].startswith("<frozen ")]
    own = [place for place in places if not _below(place[0], sys.prefix, sys.base_prefix)]
    file, line = (own or places or [("", 0)])[-1]
    return f"{file}:{line}"[:500] if file else ""


def _tasks() -> int:
    """Return how many processes and threads there are in the sandbox."""
    found = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                found += len(list((entry / "task").iterdir()))
    return found


def _limit_behind(exc: BaseException) -> str:
    """Name the limit that an error comes from, if it comes from one of ours."""
    memory, files, size, processes = (
        resource.getrlimit(kind)[0]
        for kind in (resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC)
    )
    number = exc.errno if isinstance(exc, OSError) else None
    if isinstance(exc, MemoryError) or number == errno.ENOMEM:
        return f"the memory limit is {memory // 2**20} MB" if memory != resource.RLIM_INFINITY else ""
    if number == errno.EMFILE:
        return f"the limit is {files} open files"
    if number in (errno.ENOSPC, errno.EFBIG):
        return f"a file, and each scratch folder, can hold {size // 2**20} MiB"
    # Either is also said for other reasons.
    if number == errno.EAGAIN or type(exc) is RuntimeError:
        return f"the limit is {processes} processes and threads" if _tasks() >= 0.9 * processes > 0 else ""
    return ""


def describe_error(exc: BaseException) -> dict[str, str]:
    """Return the type, text and place of an exception, whatever its own methods do."""
    try:
        text = str(exc)[:2000]
        with contextlib.suppress(OSError):
            text = "; ".join(filter(None, (text, _limit_behind(exc))))
    except BaseException:
        text = "(its message cannot be shown)"
    return {"type": type(exc).__name__[:200], "text": text, "place": _place(exc)}


def _told(exc: BaseException) -> str:
    error = describe_error(exc)
    return f"raised {error['type']}: {error['text']}" + (f" (at {error['place']})" if error["place"] else "")


def _does_not_fit(exc: BaseException) -> bool:
    """Tell whether a call failed before the called code began: what it was given does not fit its signature."""
    return isinstance(exc, TypeError) and not _place(exc)


def _signature(function: Callable[..., Any]) -> str:
    try:
        return f". Its signature is {inspect.signature(function)}"
    except (TypeError, ValueError):
        return ""


def _near(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(repr(item) for item in close)}?" if close else ""


def _module(name: str, search: list[str]) -> types.ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as exc:
        missing = exc.name or ""
        if missing and (name == missing or name.startswith(missing + ".")):
            parent, _, last = missing.rpartition(".")
            folders = list(getattr(sys.modules.get(parent), "__path__", [])) if parent else search
            siblings = [item.name for item in pkgutil.iter_modules(folders)]
            looked = [folder if Path(folder).is_dir() else f"{folder} (no such folder)" for folder in folders]
            raise SetupError(
                f"module {missing!r} was not found{_near(last, siblings) or '.'} "
                f"Looked in {', '.join(looked) or 'nothing'}"
            ) from None
        raise SetupError(
            f"{name} imports {missing or '?'!r}, which {sys.executable} does not have; "
            f"install it there, or name the interpreter that has it with target.python ({exc})"
        ) from None
    except PermissionError as exc:
        raise SetupError(
            f"importing {name}: {exc}; the sandbox has a user of its own, so the tree must be readable for everybody "
            "(chmod -R a+rX)"
        ) from None
    except BaseException as exc:
        raise SetupError(f"importing {name} {_told(exc)}") from None


def _resolve(path: str, search: list[str]) -> Any:
    module_name, _, attributes = path.partition(":")
    found: Any = _module(module_name, search)
    for name in attributes.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            public = [item for item in dir(found) if not item.startswith("_")]
            raise SetupError(
                f"{module_name} has no {attributes!r}{_near(name, public)} "
                f"(file {getattr(sys.modules[module_name], '__file__', '?')})"
            ) from None
    if not callable(found):
        raise SetupError(f"{path} is a {type(found).__name__}; a class or a function was expected")
    return found


def _accepted(
    what: str, function: Callable[..., Any], keywords: dict[str, Any], optional: list[str], dropped: list[str]
) -> dict[str, Any]:
    """Return the keywords that fit the signature; an optional one that does not is dropped, another is an error."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return keywords
    parameters = signature.parameters.values()
    if any(item.kind is inspect.Parameter.VAR_KEYWORD for item in parameters):
        return keywords
    known = [
        item.name
        for item in parameters
        if item.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    ]
    kept = {}
    for name, value in keywords.items():
        if name in known:
            kept[name] = value
        elif name in optional:
            dropped.append(name)
        else:
            raise SetupError(
                f"{what} takes no keyword {name!r}{_near(name, known) or '.'} Its signature is {signature}"
            )
    return kept


class Driver:
    """One instance of the compressor, called step after step."""

    def __init__(self, name: str, call: Callable[[Any], Any], instance: Any, adapter: dict[str, Any]) -> None:
        self.name = name
        self._call, self._instance, self._adapter = call, instance, adapter
        self._loop: asyncio.AbstractEventLoop | None = None
        self.dropped: list[str] = []

    def compress(self, messages: list[Any]) -> Any:
        """Call the compressor; an awaitable is awaited, always on the same loop."""
        try:
            result = self._call(messages)
        except TypeError as exc:
            if not _does_not_fit(exc):
                raise
            raise TypeError(
                f"{exc}; give what it needs beside the messages under call, or call it in an adapter"
            ) from None
        return self._awaited(result)

    def _awaited(self, result: Any) -> Any:
        if not inspect.isawaitable(result):
            return result
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)

        async def finish() -> Any:
            return await result

        return self._loop.run_until_complete(finish())

    @property
    def tells_when(self) -> bool:
        """Whether it can be asked when to compress."""
        return "should_compress" in self._adapter or callable(getattr(self._instance, "should_compress", None))

    def due(self, messages: list[Any], tokens: int) -> Any:
        """Ask the adapter or the instance whether to compress; None where neither has a word in it."""
        if "should_compress" in self._adapter:
            return self._adapter["should_compress"](self._instance, messages, tokens)
        asked = getattr(self._instance, "should_compress", None)
        if not callable(asked):
            return None
        names = list(inspect.signature(asked).parameters)
        if not names or "token" in names[0]:
            return asked(tokens) if names else asked()
        counted = [name for name in names[1:] if "token" in name]
        return asked(messages, **dict.fromkeys(counted[:1], tokens))

    def recall(self, name: str, removed: list[Any], query: str) -> str:
        """Ask the agent's own search: the adapter's, a method, or a function of the tree; rows become one text."""
        if name == "adapter":
            function = self._adapter.get("recall")
            if function is None:
                raise SetupError("the adapter has no recall(instance, messages, query)")
            found = self._awaited(function(self._instance, removed, query))
        else:
            function = _resolve(name, []) if ":" in name else getattr(self._instance, name)
            found = self._awaited(function(removed, query))
        if found is None or isinstance(found, str):
            return found or ""
        rows = found if isinstance(found, dict) else list(found)
        return json.dumps(rows, ensure_ascii=False, default=str)

    def status(self) -> Any:
        """Ask the adapter whether the compressor fell back."""
        return self._adapter["status"](self._instance) if "status" in self._adapter else None

    def state(self) -> Any:
        """Ask the adapter for what a later instance needs to go on from here."""
        return self._adapter["get_state"](self._instance) if self.resumable else None

    @property
    def resumable(self) -> bool:
        """Whether the adapter can save and restore the instance."""
        return "get_state" in self._adapter and "set_state" in self._adapter

    def restore(self, state: Any) -> None:
        """Hand the saved state to the new instance."""
        self._adapter["set_state"](self._instance, state)


_HOOKS = ("create", "compress", "should_compress", "recall", "status", "get_state", "set_state")


def _adapter(source: str | None, name: str) -> dict[str, Any]:
    if source is None:
        return {}
    module = types.ModuleType("_compression_eval_adapter")
    module.__file__ = name
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, name, "exec"), module.__dict__)  # noqa: S102 - the base branch's own file
    except BaseException as exc:
        raise SetupError(f"the adapter {name} {_told(exc)}") from None
    return {key: value for key, value in vars(module).items() if key in _HOOKS and callable(value)}


def build(job: dict[str, Any], search: list[str]) -> Driver:
    """Import and construct what the job names."""
    adapter = _adapter(job["adapter"], job["adapter_name"])
    path, call, optional = job["compressor"], job["call"], job["optional"]
    found = _resolve(path, search)
    dropped: list[str] = []
    try:
        if "create" in adapter:
            instance = adapter["create"]({**job["spec"], "target": found})
        elif inspect.isclass(found):
            instance = found(**_accepted(path, found, job["init"], optional, dropped))
        elif job["init"]:
            raise SetupError(f"{path} is a function and takes no init ({', '.join(job['init'])}); use call instead")
        else:
            instance = found
    except SetupError:
        raise
    except BaseException as exc:
        if _does_not_fit(exc):
            raise SetupError(
                f"{path} cannot be built: {exc}; give what it needs under init, or build it in an adapter"
                f"{_signature(found)}"
            ) from None
        raise SetupError(f"building {path} {_told(exc)}") from None
    if "compress" in adapter:
        function = adapter["compress"]
        driver = Driver(f"{job['adapter_name']}:compress", lambda m: function(instance, m, call), instance, adapter)
    else:
        driver = _direct(found, instance, job, dropped, adapter)
    driver.dropped = dropped
    return driver


def _direct(found: Any, instance: Any, job: dict[str, Any], dropped: list[str], adapter: dict[str, Any]) -> Driver:
    """Return a driver that calls the class's method, or the function, with the spec's keywords."""
    path, method, name = job["compressor"], instance, job["compressor"]
    if instance is not found or inspect.isclass(found):
        name = f"{path}.{job['method']}"
        for part in job["method"].split("."):
            if not hasattr(method, part):
                public = [item for item in dir(method) if not item.startswith("_")]
                raise SetupError(f"{path} has no method {job['method']!r}{_near(part, public)}")
            method = getattr(method, part)
    keywords = _accepted(name, method, job["call"], job["optional"], dropped)
    return Driver(name, lambda messages: method(messages, **keywords), instance, adapter)
