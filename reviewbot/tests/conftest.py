"""What holds for every test: no test fails because the machine is busy."""

from hypothesis import HealthCheck, settings

settings.register_profile("reviewbot", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("reviewbot")
