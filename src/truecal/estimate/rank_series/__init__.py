"""The rank series: truecal's default estimator."""
