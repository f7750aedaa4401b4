"""Requests to Pravega's controller and segment stores."""
