"""The door for browsers and for programs over HTTP: a request in, one call, a picture out.

Law: whatever a page shows was written by strangers, so everything is escaped; whatever a button does is the same call
that a command makes, and is reported as done only when it has happened.
"""
