"""The facilitator: the state of every issue and the next command."""
