"""How flows are found."""

import sys
from importlib import import_module
from types import ModuleType, SimpleNamespace

import pytest
from django.apps import apps as installed_apps
from django.core.exceptions import ImproperlyConfigured

from runs import registry
from runs.engine import END, START, Flow
from runs.registry import UnknownFlow, flows, get_flow
from tests.support import flows as small_flows


def flow(name, version="1"):
    made = Flow(name, state=small_flows.Steps, version=version)
    made.node("tidy", small_flows.tidy)
    made.edge(START, "tidy")
    made.edge("tidy", END)
    return made


@pytest.fixture
def apps(monkeypatch):
    """Lets the installed apps be these: a name, and the contents of its flows.py."""

    def install(**contents):
        configs = []
        for name, flows_module in contents.items():
            package, module = ModuleType(name), ModuleType(f"{name}.flows")
            package.__path__ = []
            vars(module).update(flows_module or {})
            monkeypatch.setitem(sys.modules, name, package)
            if flows_module is not None:
                monkeypatch.setitem(sys.modules, f"{name}.flows", module)
            configs.append(SimpleNamespace(name=name, module=package))
        configs.append(SimpleNamespace(name="no_module", module=None))
        monkeypatch.setattr(installed_apps, "get_app_configs", lambda: configs)
        monkeypatch.setattr(
            registry,
            "module_has_submodule",
            lambda package, name: f"{package.__name__}.{name}" in sys.modules,
        )
        monkeypatch.setattr(registry, "_found", None)

    return install


def test_the_flows_of_the_installed_apps_are_found():
    assert {"expenses", "sql_change"} <= {flow.name for flow in flows()}
    assert get_flow("expenses").version == "1"


def test_each_flow_at_the_top_of_a_flows_module_is_found(apps):
    one, two = flow("one"), flow("two")
    apps(shop={"one": one, "two": two, "other": 1}, empty={}, without=None)
    assert flows() == [one, two]
    assert get_flow("two") is two


def test_a_flow_that_another_app_imports_is_one_flow(apps):
    one = flow("one")
    apps(shop={"one": one}, office={"borrowed": one})
    assert flows() == [one]


def test_two_flows_of_one_name_and_version_are_refused_with_both_places(apps):
    apps(shop={"one": flow("one")}, office={"one": flow("one")})
    with pytest.raises(ImproperlyConfigured) as caught:
        flows()
    for part in ("'one'", "'1'", "shop.flows", "office.flows"):
        assert part in str(caught.value)


def test_flows_that_can_not_be_imported_are_named(apps, monkeypatch):
    def broken(name):
        raise ZeroDivisionError("in the middle")

    apps(shop={})
    with monkeypatch.context() as patch:
        patch.setattr(registry, "import_module", broken)
        with pytest.raises(ImproperlyConfigured, match="'shop' can't be imported: ZeroDivision"):
            flows()


def test_versions_are_ordered_as_people_do(apps):
    versions = ["1", "2", "9", "10", "10.1", "10.2", "10.10"]
    made = {version: flow("one", version) for version in versions}
    apps(shop={f"v{place}": made[version] for place, version in enumerate(reversed(versions))})
    assert get_flow("one") is made["10.10"]
    assert flows() == [made["10.10"]]
    for version in versions:
        assert get_flow("one", version) is made[version]


@pytest.mark.parametrize(
    ("older", "newer"),
    [("a2", "a10"), ("2", "2b"), ("beta", "1"), ("2026-9-1", "2026-10-1"), ("1²", "2²")],
)
def test_the_newest_of_two_versions_is_found(apps, older, newer):
    apps(shop={"newer": flow("one", newer), "older": flow("one", older)})
    assert get_flow("one").version == newer


def test_a_flow_that_can_not_run_is_refused_when_it_is_found(apps):
    lost = flow("lost")
    lost.node("island", small_flows.tidy)
    apps(shop={"lost": lost})
    with pytest.raises(ImproperlyConfigured, match=r"(?s)In shop\.flows.*'lost'.*'island'"):
        flows()


def test_an_unknown_flow_says_what_there_is(apps):
    apps(shop={"two": flow("two"), "one": flow("one")})
    with pytest.raises(UnknownFlow, match=r"no flow 'three'\. Registered flows: one, two"):
        get_flow("three")
    with pytest.raises(UnknownFlow, match="no flow 'one' in version '2'"):
        get_flow("one", "2")


def test_a_site_without_flows_says_so(apps):
    apps()
    assert flows() == []
    with pytest.raises(UnknownFlow, match="Registered flows: none"):
        get_flow("one")


def test_a_long_made_up_name_is_cut_in_the_message(apps):
    apps()
    with pytest.raises(UnknownFlow) as caught:
        get_flow("x" * 10_000, "y" * 10_000)
    assert len(str(caught.value)) < 400


def test_modules_are_imported_once(apps, monkeypatch):
    apps(shop={"one": flow("one")})
    imported = []

    def load(name):
        imported.append(name)
        return import_module(name)

    monkeypatch.setattr(registry, "import_module", load)
    flows()
    flows()
    get_flow("one")
    assert imported == ["shop.flows"]
