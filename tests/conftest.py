"""How hypothesis judges every test: by what it finds, not by how quick this machine is just then."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("ptc", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ptc")
