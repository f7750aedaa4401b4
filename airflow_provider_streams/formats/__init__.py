"""Payload bytes to Arrow columns: pure functions, on executors as on Airflow's side. Start at `decoder.py`."""
