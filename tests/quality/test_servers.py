"""The test run's own servers: found, started, removed, or an answer that says what to do."""

from pathlib import Path

import psycopg
import pytest

from tests.support import chromium, postgres


def test_the_embedded_server_works_and_is_removed_even_when_the_tests_break_off() -> None:
    with (  # noqa: PT012 - the whole block is what breaks off
        pytest.raises(KeyboardInterrupt, match="by the test"),
        postgres.running_server("embedded") as server,
    ):
        assert server.programs.embedded
        url = server.url.removesuffix("/flowsite") + "/postgres"
        with psycopg.connect(url) as connection:
            ask = "SELECT current_setting('unix_socket_directories')"
            folder = Path(str(connection.execute(ask).fetchall()[0][0]))
        assert folder.is_dir()
        raise KeyboardInterrupt("by the test")
    assert not folder.exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


def test_without_any_server_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "system_programs", lambda: None)
    monkeypatch.setattr(postgres, "embedded_programs", lambda: None)
    with (
        pytest.raises(postgres.PostgresUnavailable, match="apt-get install postgresql"),
        postgres.running_server(),
    ):
        pass


def test_an_unknown_choice_of_server_is_refused() -> None:
    with (
        pytest.raises(postgres.PostgresUnavailable, match="takes system or embedded"),
        postgres.running_server("mysql"),
    ):
        pass


def test_a_system_server_that_does_not_start_gives_way_to_the_embedded_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("initdb", "postgres"):
        (tmp_path / name).write_text("#!/bin/sh\necho 'postgres 17.0'; [ $# = 1 ]\n")
        (tmp_path / name).chmod(0o755)
    broken = postgres.Programs(tmp_path, 17, embedded=False)
    monkeypatch.setattr(postgres, "system_programs", lambda: broken)
    with postgres.running_server("") as server:
        assert server.programs.embedded


def test_a_chromium_named_by_mistake_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHROMIUM", "/nowhere/chromium")
    with pytest.raises(chromium.ChromiumMissing, match="/nowhere/chromium, which does not start"):
        chromium.find_or_install_chromium()


def test_without_chromium_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(chromium, "_candidates", lambda: iter(["/nowhere/chromium"]))
    monkeypatch.setattr(chromium, "_ways_to_install", lambda: iter([["false"]]))
    with pytest.raises(chromium.ChromiumMissing, match="playwright install chromium"):
        chromium.find_or_install_chromium()


def test_a_chromium_that_could_be_installed_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "chromium"
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(chromium, "_candidates", lambda: iter([str(program)]))
    install = ["cp", "/bin/true", str(program)]
    monkeypatch.setattr(chromium, "_ways_to_install", lambda: iter([["false"], install]))
    assert chromium.find_or_install_chromium() == str(program)
