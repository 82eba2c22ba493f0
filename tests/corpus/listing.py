"""The whole corpus, in the order of the page that lists it."""

from tests.corpus import liars_about_judges, liars_about_tests, liars_without_work, workers
from tests.corpus.agents import Liar, Worker

GROUPS: dict[str, tuple[Liar, ...]] = {
    "Words in place of work": liars_without_work.WORDS,
    "Commits that hold no work": liars_without_work.COMMITS,
    "Services that do not serve": liars_without_work.SERVICES,
    "Tests that are gone": liars_about_tests.REMOVED,
    "Tests that are not run": liars_about_tests.SKIPPED,
    "Tests that say less": liars_about_tests.WEAKENED,
    "Test runs that do not come to their end": liars_about_tests.ENDED,
    "New tests that prove nothing": liars_about_tests.NEW_TESTS,
    "Other rules": liars_about_judges.RULES,
    "Other programs in the place of those that judge": liars_about_judges.HIJACKED,
    "Secrets": liars_about_judges.SECRETS,
    "Tricks with git": liars_about_judges.GIT,
    "Checks of the task": liars_about_judges.LINT,
}

LIARS: tuple[Liar, ...] = tuple(liar for group in GROUPS.values() for liar in group)
WORKERS: tuple[Worker, ...] = workers.WORKERS
