"""Studies of measured numbers: tables from elsewhere become stores."""
