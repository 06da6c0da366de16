from django.apps import AppConfig


class FlowsiteConfig(AppConfig):
    name = "flowsite"
