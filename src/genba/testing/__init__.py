"""Scripted doubles and conformance suites for every port. The product never imports this room."""
