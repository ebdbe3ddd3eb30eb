"""Checks of a tracker and of the host it runs on, from outside: they also work if no part of it runs."""

from gctd.cli.doctor.finding import CheckStatus, Finding, examine
from gctd.cli.doctor.host import host_checks
from gctd.cli.doctor.system import broker_at, system_checks

__all__ = ["CheckStatus", "Finding", "broker_at", "examine", "host_checks", "system_checks"]
