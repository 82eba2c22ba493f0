"""What the facilitator reads and keeps."""
