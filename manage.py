#!/usr/bin/env python
"""The command line of the site: `python manage.py help` lists what it can do."""

import os
import sys


def main() -> None:
    # The demo is a development site; production sets FLOWSITE_DEBUG itself or leaves it off.
    if sys.argv[1:2] == ["demo"]:
        os.environ.setdefault("FLOWSITE_DEBUG", "1")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "flowsite.settings")
    try:
        from django.core.management import execute_from_command_line
    except ModuleNotFoundError as error:
        if error.name != "django":
            raise
        sys.exit(
            f"Django is not installed for {sys.executable}. Run `make run` once: it makes .venv "
            "with everything the site needs. After that, use .venv/bin/python manage.py."
        )
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
