"""Speed beside other packages (`benchmarks.speed`), and how often statements hold in simulated worlds (`benchmarks.coverage`;
few trusted labels, decisions and several labels per row: `benchmarks.new_methods`)."""
