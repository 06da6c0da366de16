from django.urls import path

from approvals import views

urlpatterns = [
    path("approvals/", views.inbox, name="inbox"),
    path("approvals/<uuid:request_id>/", views.request, name="request"),
    path("audit/", views.audit, name="audit"),
]
