"""Undecodable events: kept in files, and decoded again after a fix."""
