from django.urls import path

from runs import views

urlpatterns = [
    path("runs/", views.runs, name="runs"),
    path("runs/<uuid:run_id>/", views.run, name="run"),
    path("flows/", views.flows, name="flows"),
    path("flows/<str:name>/", views.flow, name="flow"),
]
