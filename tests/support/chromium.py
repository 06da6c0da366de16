"""Find a Chromium for the browser tests, or install one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

VARIABLE = "CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC_PROGRAMS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
# Without a font, Chromium lays text out in no space at all.
DEBIAN_PACKAGES = ("chromium", "fonts-liberation")
WHAT_TO_DO = (
    "Install Chromium or Google Chrome (Debian: apt-get install chromium; elsewhere: "
    f"python -m playwright install chromium), or set {VARIABLE} to the program's path."
)


class ChromiumMissing(Exception):
    """There is no Chromium that starts; the message says what to do about it."""


def find_chromium() -> str:
    """The path of a Chromium that starts. Raises ChromiumMissing."""
    if named := os.environ.get(VARIABLE):
        if _starts(named):
            return named
        raise ChromiumMissing(f"{VARIABLE} is {named}, which does not start. {WHAT_TO_DO}")
    for path in _candidates():
        if _starts(path):
            return path
    raise ChromiumMissing(f"No Chromium was found for the browser tests. {WHAT_TO_DO}")


def find_or_install_chromium() -> str:
    """Like `find_chromium`, after installing one where there is none."""
    try:
        return find_chromium()
    except ChromiumMissing:
        if os.environ.get(VARIABLE):
            raise  # it was asked for by name; another one would hide the mistake
    for command in _ways_to_install():
        print(f"No Chromium here yet: {' '.join(command)}", flush=True)
        if subprocess.run(command).returncode:
            continue
        try:
            return find_chromium()
        except ChromiumMissing:
            continue
    raise ChromiumMissing(f"No Chromium was found, and none could be installed. {WHAT_TO_DO}")


def _candidates() -> Iterator[str]:
    for name in NAMES:
        if path := shutil.which(name):
            yield path
    yield from (path for path in MAC_PROGRAMS if os.path.exists(path))
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    if os.path.exists(own):
        yield own


def _starts(path: str) -> bool:
    """Some distributions put a script in Chromium's place that only says how to install it."""
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0


def _ways_to_install() -> Iterator[list[str]]:
    as_root = _prefix_to_become_root()
    if shutil.which("apt-get") and as_root is not None:
        update = [*as_root, "apt-get", "update"]
        if subprocess.run(update).returncode:
            print("apt-get update failed; trying with the package lists at hand.", flush=True)
        yield [*as_root, "apt-get", "install", "--yes", "--no-install-recommends", *DEBIAN_PACKAGES]
    yield [sys.executable, "-m", "playwright", "install", "chromium"]


def _prefix_to_become_root() -> list[str] | None:
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo and subprocess.run([sudo, "-n", "true"], capture_output=True).returncode == 0:
        return [sudo, "-n"]
    return None
