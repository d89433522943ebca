"""All that runs on the untrusted side: the fork server, its children, and what a program can see.

Nothing in here is trusted by the host, and nothing of the host's is imported here: only the standard
library, RestrictedPython and `ptc_sandbox.confine`.
"""
