"""One module per command of `airflow streams`."""
