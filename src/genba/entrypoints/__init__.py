"""The doors: a request in, one call, a picture out."""
