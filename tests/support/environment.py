"""The environment variables that the site runs with under test.

Set outright, not as defaults: a developer's own `FLOWSITE_*` variables must not change a test's
outcome. `DATABASE_URL` alone is the caller's to choose; without it the tests use SQLite.
"""

import base64
from pathlib import Path

# The same in every run; it protects nothing.
TEST_KEYS = "test:" + base64.b64encode(b"flowsite-test-key-of-32-bytes!!!").decode()


def site_environment(var: Path, *, debug: bool = False) -> dict[str, str]:
    """The variables of a site on loopback that keeps its files in `var`.

    Production behaviour unless `debug`, without TLS, and with the example flows.
    """
    return {
        "DJANGO_SETTINGS_MODULE": "flowsite.settings",
        "FLOWSITE_DEBUG": "1" if debug else "0",
        "FLOWSITE_FLOW_APPS": "flowsite.demo",
        "FLOWSITE_HOSTS": "127.0.0.1,localhost,testserver",
        "FLOWSITE_KEYS": TEST_KEYS,
        "FLOWSITE_TLS": "0",
        "FLOWSITE_VAR": str(var),
    }
