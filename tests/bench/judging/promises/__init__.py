"""What benchmarks promise, and whether they keep it."""
