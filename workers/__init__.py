"""Celery workers, one file per role: a task is two lines that call the service."""
