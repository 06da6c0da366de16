"""Requests, decisions and the audit trail in Django's admin: to look at, never to edit."""

from __future__ import annotations

from django.contrib import admin

from runs.admin import ReadOnlyAdmin, encrypted

from .models import ApprovalRequest, AuditEntry, Decision


@admin.register(ApprovalRequest)
class ApprovalRequestAdmin(ReadOnlyAdmin):
    list_display = ("summary", "status", "kind", "risk", "run", "requested_at", "decided_at")
    list_filter = ("status", "kind", "risk")
    list_select_related = ("run",)
    search_fields = ("id", "summary", "run__id")
    exclude = ("arguments",)
    readonly_fields = (encrypted("arguments"),)


@admin.register(Decision)
class DecisionAdmin(ReadOnlyAdmin):
    list_display = ("request", "verdict", "by_name", "decided_at")
    list_filter = ("verdict",)
    list_select_related = ("request",)
    search_fields = ("request__id", "by_name")
    exclude = ("content",)
    readonly_fields = (encrypted("content"),)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ("at", "actor_name", "action", "summary")
    list_filter = ("action",)
    search_fields = ("run_id", "request_id", "actor_name", "summary")
