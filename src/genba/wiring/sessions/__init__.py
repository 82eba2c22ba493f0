"""Sessions and the fleet: agents, supervisors, sharing."""
