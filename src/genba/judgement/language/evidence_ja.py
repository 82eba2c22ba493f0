"""What was seen of an issue, in Japanese: each English sentence of the evidence with its translation.

A sentence that is not here, such as the words of a person, stays as it is.
"""

import functools
import re

_SENTENCES = (
    # what has landed
    ("commit {sha} is on the base ({how}), and {n} more", "コミット {sha} がベースにあります ({how})。ほか {n} 件"),
    ("commit {sha} is on the base ({how})", "コミット {sha} がベースにあります ({how})"),
    ("pull request #{n} was merged as {sha}", "プルリクエスト #{n} は {sha} としてマージされました"),
    (
        "pull request #{n} was merged into {target}, and not into {base}",
        "プルリクエスト #{n} は {base} ではなく {target} にマージされました",
    ),
    ("pull request #{n} was merged", "プルリクエスト #{n} はマージされました"),
    ("the work of {branch} is on the base", "{branch} の作業はベースにあります"),
    ("its issue is still open", "Issue はまだ開いています"),
    (
        "all its parts are done, and are still to be brought together",
        "すべての部分が完了しましたが、まだ 1 つにまとめられていません",
    ),
    ("all its parts are done", "すべての部分が完了しました"),
    ("closed as {reason} by {who}", "{who} が {reason} として閉じました"),
    ("closed as {reason}", "{reason} として閉じられました"),
    ("closed by {who}", "{who} が閉じました"),
    ("closed", "閉じられました"),
    ("nothing landed since it was reopened", "再開されてから取り込まれたものはありません"),
    ("no commit of it is on the base", "この Issue のコミットはベースにありません"),
    # what waits for a review or a merge
    ("pull request #{n}: approved, its checks are running", "プルリクエスト #{n}: 承認済み、検査の実行中"),
    ("pull request #{n}: approved", "プルリクエスト #{n}: 承認済み"),
    (
        "pull request #{n}: waits for a review, its checks are running",
        "プルリクエスト #{n}: レビュー待ち、検査の実行中",
    ),
    ("pull request #{n}: waits for a review", "プルリクエスト #{n}: レビュー待ち"),
    ("pull request #{n}: open, its checks are running", "プルリクエスト #{n}: オープン、検査の実行中"),
    ("pull request #{n}: open", "プルリクエスト #{n}: オープン"),
    ("{sha} is verified", "{sha} は検証済みです"),
    ("its task is in review", "タスクはレビュー中です"),
    ("waits for a review", "レビューを待っています"),
    # what is in work
    (
        "{run} is answered, and goes on with the next genba work",
        "{run} の質問には回答済みで、次の genba work で再開します",
    ),
    ("{agent} works on it ({run})", "{agent} が作業しています ({run})"),
    ("{run} was at work, and its process is gone", "{run} は作業の途中でプロセスが終了しました"),
    ("pull request #{n}: a draft", "プルリクエスト #{n}: ドラフト"),
    ("pull request #{n}: changes requested by {who}", "プルリクエスト #{n}: {who} が修正を求めています"),
    ("pull request #{n}: changes requested", "プルリクエスト #{n}: 修正が求められています"),
    ("pull request #{n}: check {name} failed", "プルリクエスト #{n}: 検査 {name} が失敗しました"),
    ("pull request #{n}: in conflict with {target}", "プルリクエスト #{n}: {target} と競合しています"),
    ("{branch} has {n} commit that is not on the base", "{branch} にベースにないコミットが {n} 件あります"),
    ("{branch} has {n} commits that are not on the base", "{branch} にベースにないコミットが {n} 件あります"),
    ("commit {sha} is not on the base ({how})", "コミット {sha} はベースにありません ({how})"),
    ("a phase of it has landed in {sha}", "一部の段階が {sha} で取り込まれました"),
    ("its task is in progress", "タスクは進行中です"),
    ("to be changed: {detail}", "修正が必要です: {detail}"),
    ("its parts are in work; left: {parts} and {n} more", "部分が作業中です。残り: {parts} ほか {n} 件"),
    ("its parts are in work; left: {parts}", "部分が作業中です。残り: {parts}"),
    # what is not begun
    ("{n} part, and none is begun", "{n} 個の部分があり、どれも始まっていません"),
    ("{n} parts, and none is begun", "{n} 個の部分があり、どれも始まっていません"),
    ("reopened {day}: nothing was done since", "{day} に再開され、その後の作業はありません"),
    ("its work {sha} was reverted by {by}", "作業 {sha} は {by} で取り消されました"),
    (
        "{n} attempt, the last by {agent} ended {how}: {detail}",
        "{n} 回試行され、最後の {agent} は {how} で終わりました: {detail}",
    ),
    (
        "{n} attempts, the last by {agent} ended {how}: {detail}",
        "{n} 回試行され、最後の {agent} は {how} で終わりました: {detail}",
    ),
    ("{n} attempt, the last by {agent} ended {how}", "{n} 回試行され、最後の {agent} は {how} で終わりました"),
    ("{n} attempts, the last by {agent} ended {how}", "{n} 回試行され、最後の {agent} は {how} で終わりました"),
    ("pull request #{n} was closed without a merge", "プルリクエスト #{n} はマージされずに閉じられました"),
    ("no commit, no branch, no pull request, no session", "コミット、ブランチ、プルリクエスト、セッションはありません"),
    ("{sha} only mentions it", "{sha} は言及しているだけです"),
    # what stands in the way
    (
        "waits for itself: {chain}, among {n} that wait for each other",
        "循環して待っています: {chain} ({n} 件が互いに待っています)",
    ),
    ("waits for itself: {chain}", "循環して待っています: {chain}"),
    (
        "waits for #{one}, which waits for #{other}, of which nothing is known",
        "#{one} の完了待ち (#{other} を待っていますが、その状況は不明です)",
    ),
    ("waits for #{one}, which waits for #{other}", "#{one} の完了待ち (#{other} を待っています)"),
    ("waits for #{one}, of which nothing is known", "#{one} の完了待ち (状況は不明です)"),
    ("waits for #{one}", "#{one} の完了待ち"),
    ("waits for {address}", "{address} の完了待ち"),
    ('asks: "{question}"', "質問: 「{question}」"),
    ("labelled blocked, and nothing says by what", "blocked ラベルが付いていますが、理由は書かれていません"),
    ("{run} waits for {what}", "{run} は {what} を待っています"),
    # what is missing or contradicts
    (
        "not known: its comments, dependencies and pull requests were not read yet",
        "不明: コメント、依存関係、プルリクエストがまだ読み込まれていません",
    ),
    (
        "not known: there is no branch {name}: what has landed is not seen",
        "不明: ブランチ {name} がないため、取り込まれたものが分かりません",
    ),
    (
        "not known: the clone is shallow: what was done before {day} is not seen",
        "不明: クローンが浅いため、{day} より前の作業が分かりません",
    ),
    ("not known: {detail}", "不明: {detail}"),
    ("{n} sessions work on it at once: {runs}", "{n} 個のセッションが同時に作業しています: {runs}"),
    (
        "it is closed, and pull request #{n} is open and not merged",
        "閉じられていますが、プルリクエスト #{n} は開いたままでマージされていません",
    ),
    (
        "it is closed, and its work {sha} was reverted by {by}",
        "閉じられていますが、作業 {sha} は {by} で取り消されました",
    ),
    ("it is closed, and {run} works on it", "閉じられていますが、{run} が作業しています"),
    (
        "it was reopened, and nothing says whether that was before: {detail}",
        "再開されましたが、それが次より前か分かりません: {detail}",
    ),
    ("its task was given up, and its issue is open", "タスクは中止されましたが、Issue は開いています"),
    (
        "its task is done, and no work of it is on the base: {sha} was reverted by {by}",
        "タスクは完了していますが、作業がベースにありません: {sha} は {by} で取り消されました",
    ),
    ("its task is done, and no work of it is on the base", "タスクは完了していますが、作業がベースにありません"),
)
_NESTED = "detail"
"""The place in a sentence that may hold another one."""


def in_japanese(detail: str) -> str:
    """The same in Japanese, as far as it is known."""
    for pattern, translation in _patterns():
        match = pattern.fullmatch(detail)
        if match is not None:
            values = match.groupdict()
            if _NESTED in values:
                values[_NESTED] = in_japanese(values[_NESTED])
            return translation.format(**values)
    return detail


@functools.cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(_pattern(english), re.DOTALL), japanese) for english, japanese in _SENTENCES)


def _pattern(sentence: str) -> str:
    """A sentence with its places: numbers are digits, everything else is whatever stands there."""
    parts = re.split(r"\{(\w+)\}", sentence)
    written = [re.escape(part) if index % 2 == 0 else _place(part) for index, part in enumerate(parts)]
    return "".join(written)


def _place(name: str) -> str:
    return rf"(?P<{name}>{r'[0-9,]+' if name in ('n', 'one', 'other') else '.+?'})"
