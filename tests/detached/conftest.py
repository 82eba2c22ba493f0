"""A run whose agent is held by a supervisor."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from tests.detached.posts import Post, cleared, posted
from tests.project import Project

MakePost = Callable[[], Awaitable[Post]]


@pytest.fixture
async def posts(project: Project) -> AsyncIterator[MakePost]:
    async with AsyncExitStack() as stack:
        stack.enter_context(cleared(project))

        async def make() -> Post:
            post = await posted(project.root)
            stack.callback(post.prepared.journal.close)
            stack.callback(post.prepared.trees.release)
            stack.callback(post.fork_server.close)
            return post

        yield make
