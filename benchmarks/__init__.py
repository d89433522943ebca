"""Benchmarks: ratios against peers, measured in one run. `python -m benchmarks.NAME [--json]`."""
