"""What is done with a window, without Airflow: plan and pin, read and record, backfill, count late rows, land."""
