"""Calls of Pravega's controller as data, and the channels that send them."""
