"""The sandbox of docker and podman."""
