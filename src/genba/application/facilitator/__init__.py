"""The facilitator of a project."""
