"""While training: losses and callbacks for torch that act on calibration (extra `torch`)."""
