"""Where the demo keeps its files."""

from pathlib import Path

from django.conf import settings

CLAIMS_FOLDER = Path(__file__).resolve().parent / "data"
"""The only folder that claims are read from."""


def demo_folder() -> Path:
    """The folder of everything the demo makes."""
    return Path(settings.FLOWSITE_VAR) / "demo"


def ledger_path() -> Path:
    """The SQLite file that paid claims are written to."""
    return demo_folder() / "ledger.sqlite3"


def customers_path() -> Path:
    """The SQLite file that `sql_change` works on."""
    return demo_folder() / "customers.sqlite3"


def log_folder() -> Path:
    """Where the processes that `manage.py demo` starts write what they say."""
    return demo_folder() / "logs"
