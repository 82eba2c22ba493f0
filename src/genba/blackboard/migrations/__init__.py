"""Alembic migrations. A revision that was released is never changed."""
