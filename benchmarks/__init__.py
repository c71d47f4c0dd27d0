"""Benchmarks of torch_gpusort: one harness, the official cases, peers.
Run from the root of the repository: `python -m benchmarks.run_official`."""
