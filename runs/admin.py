"""Runs in Django's admin: to look at, never to edit."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from .models import KeyCheck, Run, RunEvent


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Shows a model whose rows only the site's own actions write."""

    actions = None
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def encrypted(name: str) -> Any:
    """A column of an encrypted field that says how much there is, and never what."""

    @admin.display(description=name)
    def column(row: Model) -> str:
        return f"encrypted, {len(getattr(row, name)):,} characters" if getattr(row, name) else ""

    return column


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    list_display = ("short_id", "flow", "version", "status", "started_by", "via", "created_at")
    list_filter = ("status", "flow")
    list_select_related = ("started_by",)
    search_fields = ("id", "flow", "started_by__username")
    exclude = ("checkpoint",)
    readonly_fields = (encrypted("checkpoint"),)


@admin.register(RunEvent)
class RunEventAdmin(ReadOnlyAdmin):
    list_display = ("at", "run", "kind", "node", "tool")
    list_filter = ("kind",)
    list_select_related = ("run",)
    search_fields = ("run__id", "node", "tool")


@admin.register(KeyCheck)
class KeyCheckAdmin(ReadOnlyAdmin):
    list_display = ("key_id", "first_seen")
    exclude = ("proof",)
