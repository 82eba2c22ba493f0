"""What a tracker's issues and pull requests mean for tasks."""
