"""What the clients of all systems share: settings, TLS, redirects, backoff."""
