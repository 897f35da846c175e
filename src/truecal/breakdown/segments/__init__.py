"""The search behind `audit`: columns as levels, sums over all intersections, their joint null, and the few that matter."""
