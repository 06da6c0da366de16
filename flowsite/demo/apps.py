from django.apps import AppConfig


class DemoConfig(AppConfig):
    """Two real example flows, with the data and the users to try them."""

    name = "flowsite.demo"
    label = "demo"
    verbose_name = "Demo"
