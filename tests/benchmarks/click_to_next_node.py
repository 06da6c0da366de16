"""How long it takes from the click on Approve until the approved call starts.

    python -m tests.benchmarks.click_to_next_node

A real browser, web server and worker, the embedded queue, SQLite. Prints the median, the fastest
and the slowest of the clicks, in milliseconds. Both ends are read from this machine's clock.
"""

from __future__ import annotations

import re
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from playwright.sync_api import sync_playwright

from tests.support.browser import CHROMIUM_ARGUMENTS, log_in
from tests.support.chromium import find_or_install_chromium
from tests.support.demo import add_people, open_request, password_of, start_expenses, wait_for
from tests.support.site import Site

CLICKS = 15
CLAIM = "C-0023"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Site(Path(folder) / "site") as site:
        add_people(site)
        site.start_web()
        site.worker.start()
        runs = [start_expenses(site, CLAIM) for _ in range(CLICKS)]
        clicked: dict[str, float] = {}
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=find_or_install_chromium(), args=CHROMIUM_ARGUMENTS
            )
            page = browser.new_page()
            log_in(page, site, "reviewer", password_of("reviewer"))
            for run in runs:
                wait_for(site, run, "paused")
                page.goto(f"{site.url}/approvals/{open_request(site, run)}/")
                button = page.get_by_role("button", name=re.compile("^Approve "))
                button.wait_for()
                clicked[run] = time.time()
                button.click()
                page.get_by_text("Approved. The run goes on.").wait_for()
            browser.close()
        took = []
        for run in runs:
            wait_for(site, run, "completed")
            ((at,),) = site.rows(
                "SELECT at FROM runs_runevent WHERE run_id = %s AND kind = 'call.started' "
                "AND tool = 'pay_claim'",
                UUID(run),
            )
            started = datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp()
            took.append((started - clicked[run]) * 1000)
    print(
        f"From click to the next call, {CLICKS} clicks: median {statistics.median(took):.0f} ms, "
        f"fastest {min(took):.0f} ms, slowest {max(took):.0f} ms"
    )


if __name__ == "__main__":
    main()
