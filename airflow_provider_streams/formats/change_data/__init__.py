"""Messages of change data connectors (Debezium, Canal, Maxwell) to change rows."""
