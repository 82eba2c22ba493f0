"""The project: .genba/config.yaml, section by section."""
