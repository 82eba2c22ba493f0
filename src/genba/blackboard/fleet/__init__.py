"""Sessions, merge entries, escalations, budgets and executors of a fleet."""
