"""Values that screens show, derived from the blackboard."""
