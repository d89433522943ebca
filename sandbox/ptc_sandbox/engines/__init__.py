"""Engines: what can run an untrusted program. Ours is `ptc_sandbox.Sandbox`; the suite says what any must do."""
