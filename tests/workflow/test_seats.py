"""Who may call: credentials are good once, tokens until their connection is closed, and every refusal is the same."""

import asyncio
import threading

import pytest

from genba.blackboard.tasks.board import Blackboard
from genba.coordination.workflow.agent_connections import (
    CONNECTIONS_PER_NAME,
    FAILURES_OF_ALL,
    FAILURES_OF_ONE,
    MOST_LATE,
)
from genba.coordination.workflow.answers import Caller
from genba.coordination.workflow.tokens import SecretKind, fits, hashed, new_passkey, new_secret, read_secret
from genba.domain.workflow.actions import ErrorCode, WorkflowError
from tests.blackboard.conftest import Postgres
from tests.workflow.context import House


async def refusal_of(context: House, caller: Caller) -> WorkflowError:
    return await context.refused(context.service.get_next_action(caller))


async def entry_refusal(context: House, **shown: str) -> WorkflowError:
    token = shown.pop("token", "")
    return await context.refused(context.service.authenticate(Caller(token=token), **shown))


def printed(refusal: WorkflowError) -> tuple[str, str, str, str]:
    return (str(refusal.code), refusal.message, refusal.hint, refusal.action)


async def test_a_credential_is_good_once(context: House) -> None:
    run = context.begin(context.task())
    secret = await context.runs.credential(run)
    connected = await context.service.authenticate(Caller(token=secret))
    assert connected.session_token.startswith("gbs_")
    assert connected.task == 1
    refusal = await entry_refusal(context, token=secret)
    assert (refusal.code, refusal.action) == (ErrorCode.NOT_AUTHENTICATED, "exit")


async def test_what_the_connection_carries_counts_though_a_model_invents_a_passkey(context: House) -> None:
    secret = await context.runs.credential(context.begin(context.task()))
    connected = await context.service.authenticate(
        Caller(token=secret), agent_id="writer", passkey="${GENBA_CREDENTIAL}"
    )
    assert connected.agent == "writer"


async def test_of_two_who_show_one_credential_one_is_connected(context: House) -> None:
    secret = await context.runs.credential(context.begin(context.task()))
    both = await asyncio.gather(
        context.service.authenticate(Caller(token=secret)),
        context.another().authenticate(Caller(token=secret)),
        return_exceptions=True,
    )
    assert sorted(isinstance(one, WorkflowError) for one in both) == [False, True]


async def test_a_newer_credential_makes_the_older_one_worthless(context: House) -> None:
    run = context.begin(context.task())
    older = await context.runs.credential(run)
    newer = await context.runs.credential(run)
    assert (await entry_refusal(context, token=older)).code is ErrorCode.NOT_AUTHENTICATED
    assert (await context.service.authenticate(Caller(token=newer))).agent == "writer"


async def test_a_credential_that_was_not_used_in_time_is_refused(context: House) -> None:
    secret = await context.runs.credential(context.begin(context.task()))
    context.times.pass_(2 * 3600)
    assert (await entry_refusal(context, token=secret)).code is ErrorCode.NOT_AUTHENTICATED


async def test_a_second_instance_of_a_run_takes_the_place_of_the_first(context: House) -> None:
    run = context.begin(context.task())
    first = await context.enter(run)
    second = await context.enter(run)
    assert (await refusal_of(context, first)).code is ErrorCode.NOT_AUTHENTICATED
    assert await context.told(second) == "get_task"


async def test_a_run_that_has_ended_has_no_connection_and_no_credential(context: House) -> None:
    run = context.begin(context.task())
    caller = await context.enter(run)
    secret = await context.runs.credential(run)
    await context.runs.leave(run, "its process ended")
    await context.runs.leave(run, "its process ended")
    assert (await refusal_of(context, caller)).code is ErrorCode.NOT_AUTHENTICATED
    assert (await entry_refusal(context, token=secret)).code is ErrorCode.NOT_AUTHENTICATED


async def test_every_refusal_is_the_same(context: House) -> None:
    agent, passkey = await context.external_agent()
    run = context.begin(context.task())
    used = await context.runs.credential(run)
    await context.service.authenticate(Caller(token=used))
    refusals = [
        await entry_refusal(context, agent_id=agent, passkey="wrong"),
        await entry_refusal(context, agent_id=agent, passkey=new_passkey()),
        await entry_refusal(context, agent_id="nobody", passkey=passkey),
        await entry_refusal(context, agent_id=agent, passkey=passkey, project_id="prj_other"),
        await entry_refusal(context),
        await entry_refusal(context, token=used),
        await entry_refusal(context, token=new_secret(SecretKind.CREDENTIAL).text),
        await refusal_of(context, Caller()),
        await refusal_of(context, Caller(token=new_secret(SecretKind.TOKEN).text)),
        await refusal_of(context, Caller(token="gbs_x_y_z")),
        await refusal_of(context, Caller(token=used)),
        await refusal_of(context, Caller(token="\0" * 10_000)),
    ]
    assert {printed(refusal) for refusal in refusals} == {printed(refusals[0])}
    assert refusals[0].action == "exit"


async def test_a_token_with_another_secret_is_refused_also_when_the_right_one_is_remembered(context: House) -> None:
    caller = await context.spawn(context.task())
    await context.next(caller)
    kind, connection, word = caller.token.split("_")
    forged = Caller(token=f"{kind}_{connection}_{word[::-1]}")
    assert (await refusal_of(context, forged)).code is ErrorCode.NOT_AUTHENTICATED
    assert await context.told(caller) == "get_task"


async def test_a_token_runs_out(context: House) -> None:
    context.restart(token_hours=1)
    caller = await context.spawn(context.task())
    context.times.pass_(3601)
    assert (await refusal_of(context, caller)).code is ErrorCode.NOT_AUTHENTICATED


async def test_a_token_of_another_project_is_refused(postgres: Postgres) -> None:
    address = postgres.database()
    with Blackboard.open(address, "one") as one, Blackboard.open(address, "other") as other:
        here, there = House(lambda: one), House(lambda: other)
        caller = await there.spawn(there.task())
        assert (await refusal_of(here, caller)).code is ErrorCode.NOT_AUTHENTICATED
        assert await there.told(caller) == "get_task"
        await here.close()
        await there.close()


async def test_an_external_agent_enters_with_its_passkey_and_no_longer_when_it_is_revoked(context: House) -> None:
    agent, passkey = await context.external_agent(system_prompt="You are kind.")
    connected = await context.service.authenticate(Caller(), agent_id="visitor", passkey=passkey)
    assert connected.system_prompt == "You are kind."
    caller = Caller(token=connected.session_token)
    assert await context.told(caller) == "exit no_task"
    context.workflow.set_passkey(agent, "")
    assert (await refusal_of(context, caller)).code is ErrorCode.NOT_AUTHENTICATED
    assert (await entry_refusal(context, agent_id=agent, passkey=passkey)).code is ErrorCode.NOT_AUTHENTICATED


async def test_a_rotated_passkey_replaces_the_old_one(context: House) -> None:
    agent, old = await context.external_agent()
    new = new_passkey()
    context.workflow.set_passkey(agent, await hashed(new))
    assert (await entry_refusal(context, agent_id=agent, passkey=old)).code is ErrorCode.NOT_AUTHENTICATED
    await context.come(agent, new)


async def test_who_guesses_under_the_name_of_an_agent_does_not_keep_it_out(context: House) -> None:
    agent, passkey = await context.external_agent()
    other, others_passkey = await context.external_agent("other")
    codes = [(await entry_refusal(context, agent_id=agent, passkey="wrong")).code for _ in range(12)]
    assert codes == [ErrorCode.NOT_AUTHENTICATED] * 10 + [ErrorCode.LIMIT] * 2
    limited = await entry_refusal(context, agent_id=agent, passkey=others_passkey)
    assert (limited.code, limited.action) == (ErrorCode.LIMIT, "exit")
    await context.come(agent, passkey)
    await context.come(other, others_passkey)
    unknown = [await entry_refusal(context, agent_id="nobody", passkey="wrong") for _ in range(12)]
    assert [one.code for one in unknown] == codes, "a name that is not known is told the same"
    context.times.pass_(60)
    await context.come(agent, passkey)


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_the_right_passkey_enters_while_others_guess_at_the_same_time(context: House) -> None:
    agent, passkey = await context.external_agent()
    guesses = [asyncio.create_task(entry_refusal(context, agent_id=agent, passkey="wrong")) for _ in range(40)]
    entered = asyncio.create_task(context.come(agent, passkey))
    guesses += [asyncio.create_task(entry_refusal(context, agent_id=agent, passkey="wrong")) for _ in range(20)]
    async with asyncio.timeout(60):
        await entered
        refused = await asyncio.gather(*guesses)
    assert {one.code for one in refused} == {ErrorCode.NOT_AUTHENTICATED, ErrorCode.LIMIT}


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_more_guesses_than_can_be_looked_at_are_refused_at_once(context: House) -> None:
    agent, passkey = await context.external_agent()
    many = MOST_LATE + FAILURES_OF_ONE + 100
    guesses = [asyncio.create_task(entry_refusal(context, agent_id=agent, passkey="wrong")) for _ in range(many)]
    refused = await asyncio.gather(*guesses)
    assert [one.code for one in refused].count(ErrorCode.NOT_AUTHENTICATED) == FAILURES_OF_ONE
    await context.come(agent, passkey)


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)  # who fails is counted in memory
async def test_failures_under_other_names_block_no_agent(context: House) -> None:
    agent, passkey = await context.external_agent()
    token = (await context.spawn(context.task())).token
    secret = await context.runs.credential(context.begin(context.task("Build a boat")))
    context.restart()
    for number in range(FAILURES_OF_ALL):
        await refusal_of(context, Caller(token=f"gbs_{number:x}_{'0' * 40}"))

    absent = await entry_refusal(context, agent_id="nobody", passkey="wrong")
    wrong = await entry_refusal(context, agent_id=agent, passkey="wrong")
    await context.come(agent, passkey)
    await context.service.authenticate(Caller(token=secret))

    assert absent.code is ErrorCode.LIMIT
    assert printed(wrong) == printed(absent)
    assert await context.told(Caller(token=token)) == "get_task"


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)  # who is connected lately is counted in memory
async def test_no_one_gets_around_the_limit_of_calls_by_ever_new_connections(context: House) -> None:
    agent, passkey = await context.external_agent()
    for _ in range(CONNECTIONS_PER_NAME):
        await context.come(agent, passkey)
    limited = await entry_refusal(context, agent_id="visitor", passkey=passkey)
    assert (limited.code, limited.action) == (ErrorCode.LIMIT, "retry")
    context.times.pass_(60 / CONNECTIONS_PER_NAME)
    await context.come(agent, passkey)


async def test_a_runaway_client_is_asked_to_slow_down_and_goes_on_after_a_while(context: House) -> None:
    context.restart(calls_per_minute=20, max_repeats=1000)
    caller = await context.spawn(context.task())
    for _ in range(20):
        await context.next(caller)
    refusal = await refusal_of(context, caller)
    assert (refusal.code, refusal.action) == (ErrorCode.LIMIT, "retry")
    assert "seconds" in refusal.hint
    context.times.pass_(3)
    assert await context.told(caller) == "get_task"


async def test_a_token_is_good_for_another_service_on_the_same_blackboard(context: House) -> None:
    caller = await context.spawn(context.task())
    context.restart()
    assert await context.told(caller) == "get_task"


async def test_one_that_logs_out_has_no_connection_any_more(context: House) -> None:
    caller = await context.spawn(context.task())
    assert (await context.service.logout(caller)).next == "Stop."
    assert (await refusal_of(context, caller)).code is ErrorCode.NOT_AUTHENTICATED


async def test_a_closed_connection_cannot_be_hammered(context: House) -> None:
    caller = await context.spawn(context.task())
    await context.service.logout(caller)
    codes = [(await refusal_of(context, caller)).code for _ in range(12)]
    assert codes == [ErrorCode.NOT_AUTHENTICATED] * 10 + [ErrorCode.LIMIT] * 2


async def test_no_secret_is_kept_or_shown(context: House) -> None:
    agent, passkey = await context.external_agent()
    run = context.begin(context.task())
    secret = await context.runs.credential(run)
    connected = await context.service.authenticate(Caller(token=secret))
    caller = Caller(token=connected.session_token)
    external_agent = await context.come(agent, passkey)
    await context.next(caller)
    await context.next(external_agent)
    refusal = await context.refused(context.service.get_task(caller, 99))
    kept = repr(context.everything())
    for word in (passkey, secret, caller.token, external_agent.token):
        for shown in (
            kept,
            repr(caller),
            repr(connected),
            repr(refusal),
            str(refusal.as_dict()),
            repr(read_secret(word, SecretKind.TOKEN)),
        ):
            assert word not in shown
            assert word.rpartition("_")[2] not in shown


async def test_a_hash_fits_its_secret_and_nothing_fits_no_hash() -> None:
    known = await hashed("gbk_one")
    assert await fits("gbk_one", known)
    assert not await fits("gbk_two", known)
    assert not await fits("gbk_one", "")
    assert not await fits("gbk_one", "no hash at all")


async def test_however_many_come_at_once_one_thread_makes_their_hashes() -> None:
    await asyncio.gather(*(hashed(new_passkey()) for _ in range(8)))

    assert len([thread for thread in threading.enumerate() if thread.name.startswith("genba-hashing")]) == 1
