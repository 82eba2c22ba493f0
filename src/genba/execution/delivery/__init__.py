"""After the loop: merge, push, pull request, labels."""
