"""Settings of the site, read from the environment.

========================  =====================================================================
``FLOWSITE_DEBUG``        ``1`` for development; off by default
``FLOWSITE_KEYS``         the key ring (see ``runs.keys``); debug mode makes a key file in var/
``FLOWSITE_HOSTS``        comma-separated host names that the site answers to
``FLOWSITE_TLS``          on by default outside debug mode; ``0`` for plain HTTP on loopback
``FLOWSITE_FLOW_APPS``    comma-separated apps that hold flows; the demo's in debug mode
``FLOWSITE_VAR``          the folder for files that the site makes (default: ``var/``)
``DATABASE_URL``          default: a SQLite file in that folder
========================  =====================================================================
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from runs.keys import HOW_TO_MAKE_ONE, KeyRing, KeyRingError, read_or_make_key_file


def _flag(name: str, default: bool) -> bool:
    text = os.environ.get(name, "").strip().lower()
    if text in ("", "0", "1", "true", "false", "yes", "no", "on", "off"):
        return default if not text else text in ("1", "true", "yes", "on")
    raise ImproperlyConfigured(f"{name} is {text!r}; it takes 1 or 0.")


def _names(name: str) -> list[str]:
    return [part.strip() for part in os.environ.get(name, "").split(",") if part.strip()]


BASE_DIR = Path(__file__).resolve().parent.parent
FLOWSITE_VAR = Path(os.environ.get("FLOWSITE_VAR") or BASE_DIR / "var").resolve()
DEBUG = _flag("FLOWSITE_DEBUG", False)
FLOWSITE_TLS = _flag("FLOWSITE_TLS", not DEBUG)

try:
    if os.environ.get("FLOWSITE_KEYS"):
        FLOWSITE_KEYS = KeyRing.parse(os.environ["FLOWSITE_KEYS"])
    elif DEBUG:
        FLOWSITE_KEYS = read_or_make_key_file(FLOWSITE_VAR / "keys")
    else:
        raise ImproperlyConfigured(
            "FLOWSITE_KEYS is not set. It holds the keys that seal runs and encrypt arguments, "
            f"as id:base64, newest first. Make one with: {HOW_TO_MAKE_ONE} "
            "(for development, FLOWSITE_DEBUG=1 makes a key file by itself)."
        )
except KeyRingError as error:
    raise ImproperlyConfigured(str(error)) from error

SECRET_KEY = FLOWSITE_KEYS.derive("django-secret-key").hex()
SECRET_KEY_FALLBACKS = [
    FLOWSITE_KEYS.derive("django-secret-key", key_id).hex()
    for key_id in FLOWSITE_KEYS
    if key_id != FLOWSITE_KEYS.newest
]

ALLOWED_HOSTS = _names("FLOWSITE_HOSTS") or (["127.0.0.1", "localhost", "[::1]"] if DEBUG else [])
CSRF_TRUSTED_ORIGINS = [
    f"https://*{host}" if host.startswith(".") else f"https://{host}"
    for host in ALLOWED_HOSTS
    if FLOWSITE_TLS and host != "*"
]

INSTALLED_APPS = [
    "flowsite.apps.FlowsiteConfig",
    "approvals",
    "runs",
    *_names("FLOWSITE_FLOW_APPS"),
    *(["flowsite.demo"] if DEBUG and "flowsite.demo" not in _names("FLOWSITE_FLOW_APPS") else []),
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_htmx",
    "django_tasks",
    "django_tasks_db",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "flowsite.middleware.content_security_policy",
    "flowsite.middleware.site_ready",
    "flowsite.middleware.no_nul_characters",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "flowsite.middleware.htmx_redirects",
]

ROOT_URLCONF = "flowsite.urls"
WSGI_APPLICATION = "flowsite.wsgi.application"
ASGI_APPLICATION = "flowsite.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "flowsite.context.navigation",
            ],
        },
    }
]

_SQLITE = {
    # A writer takes the lock when its transaction begins, so that it waits for the busy timeout
    # rather than failing half-way; readers go on reading beside it (WAL).
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,  # seconds
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;",
}
_database: Any = dj_database_url.parse(
    os.environ.get("DATABASE_URL") or f"sqlite:///{FLOWSITE_VAR / 'flowsite.sqlite3'}"
)
if _database["ENGINE"] == "django.db.backends.sqlite3":
    Path(_database["NAME"]).parent.mkdir(parents=True, exist_ok=True)
    _database["OPTIONS"] = _SQLITE | _database.get("OPTIONS", {})
DATABASES = {"default": _database}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
CSRF_FAILURE_VIEW = "flowsite.views.csrf_failure"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = FLOWSITE_VAR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
# In debug mode the files are served from where they are edited, with no collecting in between.
WHITENOISE_USE_FINDERS = DEBUG
if DEBUG:
    STORAGES["staticfiles"] = {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage",
    }

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = FLOWSITE_TLS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SECURE_SSL_REDIRECT = FLOWSITE_TLS
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if FLOWSITE_TLS else None
SECURE_HSTS_SECONDS = 31_536_000 if FLOWSITE_TLS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = FLOWSITE_TLS
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2_621_440  # bytes of a posted form

TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": ["runs"]}}

# What `runs` is handed from outside, by dotted path.
FLOWSITE_APPROVALS = "approvals.port.DatabaseApprovals"
FLOWSITE_DISPATCHER = "runs.dispatch.EmbeddedDispatcher"
# A worker renews its claim on a run three times in this many seconds; another worker takes the
# run over once it has gone unrenewed for that long.
FLOWSITE_LEASE_SECONDS = 60

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": "INFO"},
}
