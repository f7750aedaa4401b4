"""The DAG file that `airflow streams init` writes."""
