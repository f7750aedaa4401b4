"""The Spark job: plans in, receipts out."""
