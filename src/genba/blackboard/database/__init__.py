"""The database itself: tables, connections, errors and what all queries share."""
