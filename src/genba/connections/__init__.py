"""The outside world, one folder per thing that is reached.

Law: connections do not know each other; foreign errors are translated here.
"""
