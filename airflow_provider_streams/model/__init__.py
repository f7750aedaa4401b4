"""Values and arithmetic only: no client, no Spark, no Airflow, no network."""
