"""Cases with exact answers for any implementation of calibration errors. README.md says how to use them."""
