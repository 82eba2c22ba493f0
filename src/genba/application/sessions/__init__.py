"""Sessions, as the use cases start, stop and describe them."""
