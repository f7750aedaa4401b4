"""What follows a covered window: late rows, quarantine, retention, maintenance."""
