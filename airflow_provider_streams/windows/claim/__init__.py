"""May this reader land this window in this table?"""
