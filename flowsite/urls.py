"""The site's addresses."""

from django.contrib import admin
from django.urls import include, path

from flowsite import views

urlpatterns = [
    path("", views.home, name="home"),
    path("", include("approvals.urls")),
    path("", include("runs.urls")),
    path("accounts/login/", views.Login.as_view(), name="login"),
    path("accounts/logout/", views.Logout.as_view(), name="logout"),
    path("admin/", admin.site.urls),
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
]

handler400 = "flowsite.views.bad_request"
handler403 = "flowsite.views.permission_denied"
handler404 = "flowsite.views.not_found"
handler500 = "flowsite.views.server_error"
