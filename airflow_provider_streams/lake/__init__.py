"""Tables as files: tasks write them with Arrow, and one commit puts them in a window's place. No Spark in here."""
