"""How older databases become today's. Law: a revision that was released is never changed."""
