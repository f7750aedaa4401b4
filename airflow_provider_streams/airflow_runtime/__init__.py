"""What a running Airflow task gives to work on windows, and takes from it."""
