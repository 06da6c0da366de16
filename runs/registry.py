"""Finds the flows of the installed apps.

``flows.py`` of every installed app is imported at the first look-up; each module-level ``Flow``
is registered by its name and version.
"""

from __future__ import annotations

import re
import threading
from importlib import import_module
from types import ModuleType

from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import module_has_submodule

from runs.engine import Flow, FlowError

_lock = threading.Lock()
_found: dict[str, dict[str, Flow]] | None = None


class UnknownFlow(LookupError):
    """No such flow, or no such version of it, is registered."""

    def __init__(self, name: str, version: str | None) -> None:
        self.name, self.version = name, version
        known = ", ".join(sorted(_registered())) or "none"
        named = f"{name[:100]!r}" + (f" in version {version[:40]!r}" if version else "")
        super().__init__(
            f"There is no flow {named}. Registered flows: {known}. A flow is found in flows.py "
            "of an installed app (FLOWSITE_FLOW_APPS)."
        )


def flows() -> list[Flow]:
    """The newest version of each flow, by name."""
    return [get_flow(name) for name in sorted(_registered())]


def get_flow(name: str, version: str | None = None) -> Flow:
    """A flow in one version, or in its newest; UnknownFlow says what there is."""
    versions = _registered().get(name, {})
    if version is None and versions:
        return versions[max(versions, key=_natural)]
    if version not in versions:
        raise UnknownFlow(name, version)
    return versions[version]


def _natural(version: str) -> list[tuple[int, int, str]]:
    """Order versions as people do: 2 before 10."""
    parts = re.split(r"(\d+)", version)
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts if part]


def _registered() -> dict[str, dict[str, Flow]]:
    global _found
    if _found is None:
        with _lock:
            if _found is None:
                _found = _discover()
    return _found


def _discover() -> dict[str, dict[str, Flow]]:
    found: dict[str, dict[str, Flow]] = {}
    origin: dict[int, str] = {}
    for app in apps.get_app_configs():
        if app.module is None or not module_has_submodule(app.module, "flows"):
            continue
        try:
            module = import_module(f"{app.name}.flows")
        except Exception as error:
            raise ImproperlyConfigured(
                f"The flows of {app.name!r} can't be imported: {type(error).__name__}: {error}"
            ) from error
        for flow in _flows_in(module):
            _check(flow, module)
            versions = found.setdefault(flow.name, {})
            other = versions.setdefault(flow.version, flow)
            origin.setdefault(id(flow), module.__name__)
            if other is not flow:
                raise ImproperlyConfigured(
                    f"Two flows are named {flow.name!r} in version {flow.version!r}, in "
                    f"{origin[id(other)]} and {module.__name__}. Give one another name or version."
                )
    return found


def _check(flow: Flow, module: ModuleType) -> None:
    try:
        flow.check()
    except FlowError as error:
        raise ImproperlyConfigured(f"In {module.__name__}: {error}") from error


def _flows_in(module: ModuleType) -> list[Flow]:
    return [value for value in vars(module).values() if isinstance(value, Flow)]
