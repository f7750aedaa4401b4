"""Property tests: no time limit per example (machines are shared), and the failing example printed for a re-run."""

from hypothesis import settings

settings.register_profile("shared-machine", deadline=None, print_blob=True)
settings.load_profile("shared-machine")
