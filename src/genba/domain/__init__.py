"""The nouns of the house: ids, values, events, errors and ports.

Law: nothing here does I/O, and nothing here imports another room.
"""
