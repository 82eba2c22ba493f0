"""The one place that starts, watches and ends processes."""
