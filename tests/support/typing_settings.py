"""The site's settings, loadable with no variable set: what the type checker's plugin reads."""

import os
from pathlib import Path

from tests.support.environment import site_environment

# Nothing is read or written there; the settings make a folder for a database file only.
os.environ.update(site_environment(Path("var")))
os.environ["DATABASE_URL"] = "sqlite://:memory:"

from flowsite.settings import *  # noqa: F403 - the settings read what was just set
