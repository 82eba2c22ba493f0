"""Run the migrations on the connection, and in the transaction, that the caller has open."""

from alembic import context

from genba.blackboard.database.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
