"""Speed beside other packages (`benchmarks.speed`), and how often statements hold in simulated worlds (`benchmarks.coverage`)."""
