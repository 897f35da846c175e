"""Speed and memory, side by side with other libraries, as ratios within one run. `make bench` runs it all."""
