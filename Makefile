# `make run` starts the example site, `make test` proves the tree; each sets up .venv by itself.

SHELL := /bin/sh
VENV := .venv
PYTHONS := python3.11 python3 python3.12 python3.13 python3.14
OLD_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
UV_COMPILE := $(VENV)/bin/python -m uv pip compile --quiet --universal --python-version 3.11 \
	--generate-hashes --no-header --no-emit-index-url --no-emit-find-links

.DEFAULT_GOAL := help
.PHONY: help run test check bench lock clean

help:
	@echo "make run     start the example site and print its address (Ctrl-C stops it)"
	@echo "make test    everything CI checks: quality, SQLite, PostgreSQL, a real browser"
	@echo "make check   the quality checks alone"
	@echo "make bench   print how long things take; asserts nothing"
	@echo "make lock    renew the lock files (LOCK_FLAGS=--upgrade takes newer versions)"
	@echo "make clean   remove .venv and the caches; the site's data in var/ stays"
	@echo
	@echo "PYTHON=/path/to/python chooses the Python (3.11 or newer) that .venv is made with."

# Installs a lock file into .venv, only when it differs from the copy kept at the last install.
define install
@cmp -s $(1) $(VENV)/installed-$(1) && $(VENV)/bin/python -c "$(OLD_ENOUGH)" 2>/dev/null || { \
	$(call ensure_venv) && \
	echo "Installing the packages of $(1)." && \
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(1) && \
	cp $(1) $(VENV)/installed-$(1); \
}
endef

# A .venv that cannot run any more (a moved or removed Python, a broken install) is made anew.
define ensure_venv
{ $(VENV)/bin/python -c "$(OLD_ENOUGH)" && $(VENV)/bin/python -m pip --version; } >/dev/null 2>&1 || { \
	for python in $(or $(PYTHON),$(PYTHONS)); do \
		if "$$python" -c "$(OLD_ENOUGH)" 2>/dev/null; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
		echo "Flowsite needs Python 3.11 or newer; tried: $(or $(PYTHON),$(PYTHONS))." >&2; \
		echo "Install it, or name it: make $(firstword $(MAKECMDGOALS)) PYTHON=/path/to/python3.11" >&2; \
		exit 1; \
	fi; \
	echo "Making $(VENV) with $$found."; \
	"$$found" -m venv --clear $(VENV) || { \
		echo "$$found cannot make a virtual environment." >&2; \
		echo "On Debian and Ubuntu, install the package python3-venv." >&2; exit 1; }; \
}
endef

run:
	$(call install,requirements.txt)
	@exec $(VENV)/bin/python manage.py demo

test:
	$(call install,requirements-test.txt)
	@exec $(VENV)/bin/python -m tests

check:
	$(call install,requirements-test.txt)
	@exec $(VENV)/bin/python -m tests quality

bench:
	$(call install,requirements-test.txt)
	@exec $(VENV)/bin/python -m tests.benchmarks.click_to_next_node

# The lock files hold hashes and no address, so that every index serves them.
lock:
	$(call install,requirements-test.txt)
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(UV_COMPILE) $(LOCK_FLAGS) -o requirements.txt pyproject.toml
	$(UV_COMPILE) $(LOCK_FLAGS) -c requirements.txt --extra test -o requirements-test.txt pyproject.toml

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
