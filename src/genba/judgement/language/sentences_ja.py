"""Genba's stored sentences: the English pattern, and the Japanese text with the same names in braces.

A part whose name begins with `own_` is translated as well. A pattern that stands earlier wins.
"""

SENTENCES: dict[str, str] = {
    # ── goals ────────────────────────────────────────────────────────────────────────────────────────────────────────
    "changes no file that fits {pattern}": "{pattern} に一致するファイルを変更していません",
    "there is no file {path}": "ファイル {path} がありません",
    "adds no test that fits {pattern}; what it adds can never fail: {own_files}": (
        "{pattern} に一致するテストを追加していません。追加したものは失敗することがありません: {own_files}"
    ),
    "adds no test; what it adds can never fail: {own_files}": (
        "テストを追加していません。追加したものは失敗することがありません: {own_files}"
    ),
    "adds no test that fits {pattern}": "{pattern} に一致するテストを追加していません",
    "adds no test": "テストを追加していません",
    "adds tests only beside the code ({own_files}): they cannot be run on the base without it; "
    "put them into a file of tests": (
        "テストはコードと同じファイルにしかなく({own_files})、コードなしではベースで実行できません。"
        "テスト用のファイルに書いてください"
    ),
    "the working tree is on {strayed}, not on its branch": (
        "ワークツリーがセッションのブランチではなく {strayed} にあります"
    ),
    "the working tree is on {strayed}, not on {branch}": "ワークツリーが {branch} ではなく {strayed} にあります",
    "{count} file not committed: {own_files}": "コミットされていないファイルが {count} 件あります: {own_files}",
    "{count} files not committed: {own_files}": "コミットされていないファイルが {count} 件あります: {own_files}",
    "not everything is committed: {files}": "コミットされていないものがあります: {files}",
    "the branch has no commit over its base": "ブランチにベースより新しいコミットがありません",
    "its commits change nothing": "コミットは何も変更していません",
    "its commits take back what they change": "コミットは自身の変更を打ち消しています",
    "the commits take back what they change: nothing is different from the base": (
        "コミットは自身の変更を打ち消していて、ベースとの違いがありません"
    ),
    "{count} commit changes nothing: {own_commits}": "{count} 件のコミットは何も変更していません: {own_commits}",
    "{count} commits change nothing: {own_commits}": "{count} 件のコミットは何も変更していません: {own_commits}",
    "commits were left on other branches: {own_branches}": "別のブランチに残されたコミットがあります: {own_branches}",
    "not run: the branch changes what judges it ({goal})": (
        "実行していません: ブランチは自身を判定するものを変更しています({goal})"
    ),
    "changes what judges it: {own_lines}": "自身を判定するものを変更しています: {own_lines}",
    "changed {own_files}, which judges it, while it ran": "実行中に、自身を判定する {own_files} を変更しました",
    "the task must allow it: --may-change {path}": "タスクの許可が必要です: --may-change {path}",
    "{path} is a repository of its own, and no commit contains its files": (
        "{path} は独立したリポジトリで、そのファイルはどのコミットにもありません"
    ),
    "{path} points to nothing": "{path} は何も指していません",
    "{path} leaves the repository: {target}": "{path} はリポジトリの外を指しています: {target}",
    "{path} points into git's own folder: {target}": "{path} は git 自身のフォルダーの中を指しています: {target}",
    "{path} goes through {place} to {onward}": "{path} は {place} を通って {onward} を指しています",
    "{path} goes in circles: {target}": "{path} のリンクは循環しています: {target}",
    "{path} points to {target}": "{path} は {target} を指しています",
    "{path} has a name that leaves its folder": "{path} の名前はフォルダーの外を指しています",
    "{path} has the name of git's own folder": "{path} は git 自身のフォルダーの名前です",
    "{path} differs from {other} by case alone": "{path} と {other} は大文字と小文字だけが違います",
    "took longer than {seconds} s": "{seconds} 秒を超えました",
    "exit code {code}": "終了コード {code}",
    "`{command}` cannot be run: {tool} is not installed": (
        "`{command}` を実行できません: {tool} がインストールされていません"
    ),
    "`{command}` cannot be run: {output}": "`{command}` を実行できません: {output}",
    "`{command}` cannot be run": "`{command}` を実行できません",
    "`{command}` ran no test ({count} skipped): name the command that runs the tests: {hint}": (
        "`{command}` はテストを 1 件も実行していません({count} 件をスキップ)。"
        "テストを実行するコマンドを指定してください: {hint}"
    ),
    "`{command}` ran no test: name the command that runs the tests: {hint}": (
        "`{command}` はテストを 1 件も実行していません。テストを実行するコマンドを指定してください: {hint}"
    ),
    "`{command}` ended with 0, but no test passed, and {count} failed: name the command that runs the tests: {hint}": (
        "`{command}` は 0 で終わりましたが、合格したテストがなく、{count} 件が失敗しました。"
        "テストを実行するコマンドを指定してください: {hint}"
    ),
    "ended with 0, but {own_doubt}": "0 で終わりましたが、{own_doubt}",
    "unittest did not come to its end": "unittest が最後まで実行されていません",
    "pytest did not come to its end": "pytest が最後まで実行されていません",
    "pytest counted {counts}": "pytest の集計は {counts} です",
    "no {kind} command was found; name one: command: {example}": (
        "{kind} のコマンドが見つかりません。指定してください: command: {example}"
    ),
    "the command is empty": "コマンドが空です",
    "printed something: {line}": "出力がありました: {line}",
    "the tests import {copy}, not this commit: install it in verification.setup, or remove that copy": (
        "テストはこのコミットではなく {copy} をインポートしています。"
        "verification.setup でインストールするか、その写しを取り除いてください"
    ),
    "there is no checkout of the base to run the new tests on": (
        "新しいテストを実行するベースのチェックアウトがありません"
    ),
    "the branch adds no test": "ブランチはテストを追加していません",
    "{file} adds no test that runs": "{file} は実行されるテストを追加していません",
    "adds no test that runs": "実行されるテストを追加していません",
    "{file} and {count} more pass on the base as well": "{file} ほか {count} 件はベースでも合格します",
    "{file} passes on the base as well": "{file} はベースでも合格します",
    "the tests are red on the base already, so a new one proves nothing: {own_detail}": (
        "テストはベースですでに失敗しているため、新しいテストは何も証明しません: {own_detail}"
    ),
    "on the base: {own_detail}": "ベースでは: {own_detail}",
    "the setup of the checkout: {own_detail}": "チェックアウトのセットアップ: {own_detail}",
    "pytest did not run the tests: {own_detail}": "pytest がテストを実行していません: {own_detail}",
    "the service ended before it was ready: {own_detail}": "サービスは準備ができる前に終了しました: {own_detail}",
    "the service ended while it was asked: {own_detail}": "サービスは問い合わせ中に終了しました: {own_detail}",
    "the service was not ready within {seconds} s: nothing listens on port {port}": (
        "サービスは {seconds} 秒以内に準備ができませんでした。ポート {port} で待ち受けるものがありません"
    ),
    "the service was not ready within {seconds} s": "サービスは {seconds} 秒以内に準備ができませんでした",
    "{question} → no answer within {seconds} s": "{question} → {seconds} 秒以内に応答がありません",
    "{question} → no answer: {error}": "{question} → 応答がありません: {error}",
    "{question} → {own_answer}": "{question} → {own_answer}",
    "port {port} is taken by another process": "ポート {port} は別のプロセスが使っています",
    # ── verdicts ─────────────────────────────────────────────────────────────────────────────────────────────────────
    "no progress: no reply fits ({own_why}), and nothing changed in the tree": (
        "進展がありません: 形式に合う回答がなく({own_why})、ツリーも変わっていません"
    ),
    "no progress: {own_detail}, again, and nothing changed in the tree": (
        "進展がありません: {own_detail}。同じ失敗の繰り返しで、ツリーは変わっていません"
    ),
    "the iterations are done, and {own_detail}": "イテレーションを使い切りました。{own_detail}",
    "the agent was not allowed to use {tools}, and did nothing; {own_detail}": (
        "エージェントは {tools} の使用を許可されず、何もしませんでした。{own_detail}"
    ),
    "the instance ended, and had never authenticated": "インスタンスは認証しないまま終了しました",
    "the instance ended without a result, after {number} calls; its last action was: {action}": (
        "インスタンスは {number} 回の呼び出しの後、結果を出さずに終了しました。最後の action: {action}"
    ),
    "no reply fitted after {number} questions: {own_why}": (
        "{number} 回質問しましたが、形式に合う回答がありませんでした: {own_why}"
    ),
    "the fallback intent leads nowhere: {own_why}": "fallbackIntent の行き先がありません: {own_why}",
    "the agent escalated to a human": "エージェントが人間の判断を求めました",
    "{own_detail} ({attempt} of {most} attempts)": "{own_detail}({most} 回中 {attempt} 回目の試行)",
    "{count} of {most} iterations are used": "{most} 回中 {count} 回のイテレーションを使いました",
    "{count} of {most} iterations are done": "{most} 回中 {count} 回のイテレーションが終わりました",
    "{count} of {most} status checks are done": "{most} 回中 {count} 回の状態確認が終わりました",
    "{count} of {most} tokens are used": "{most} トークン中 {count} トークンを使いました",
    "{count} of {most} seconds are used": "{most} 秒中 {count} 秒を使いました",
    "${count} of ${most} are used": "${most} のうち ${count} を使いました",
    "its process died": "プロセスが終了しました",
    "its agent has left": "エージェントが離れました",
    "its part was lost: {own_why}": "担当していた部分が失われました: {own_why}",
    # ── what a person is asked ───────────────────────────────────────────────────────────────────────────────────────
    "{agent} cannot be run: {own_why}": "{agent} を実行できません: {own_why}",
    "{count} of {most} attempts failed ({ever} sessions so far)": (
        "{most} 回中 {count} 回の試行が失敗しました(これまでのセッションは {ever} 件)"
    ),
    "{count} of {most} attempts failed": "{most} 回中 {count} 回の試行が失敗しました",
    "{own_count} failed, and no other agent is left to try": (
        "{own_count}が失敗し、試せるエージェントはほかにいません"
    ),
    "{own_count} failed ({ever} sessions so far), and no other agent is left to try": (
        "{own_count}が失敗し(これまでのセッションは {ever} 件)、試せるエージェントはほかにいません"
    ),
    "{count} plans were made, and the last one was rejected": "{count} 件の計画が作られ、最後の計画は却下されました",
    "Review: {title}": "レビュー: {title}",
    "Judge commit {commit} of #{number}.": "#{number} のコミット {commit} を判定してください。",
    "Is commit {commit} what was wanted?": "コミット {commit} は求めたものですか?",
    "Changes were requested, and nothing was changed. Approve the commit, or say what is missing.": (
        "変更が求められましたが、何も変更されていません。コミットを承認するか、足りないものを伝えてください。"
    ),
    "Reviewers requested changes {count} times. Approve the commit, or say what is missing.": (
        "レビュアーが {count} 回変更を求めました。コミットを承認するか、足りないものを伝えてください。"
    ),
    "No agent may review it: its authors never do. Is the commit what was wanted?": (
        "レビューできるエージェントがいません。作成者は自分の作業をレビューしません。コミットは求めたものですか?"
    ),
    "Its review came to nothing: {own_why}. Is the commit what was wanted?": (
        "レビューの結果が得られませんでした: {own_why}。コミットは求めたものですか?"
    ),
    "Every part of it was cancelled. Cancel it as well, or add a part: {command}": (
        "すべての部分が取り消されました。このタスクも取り消すか、部分を追加してください: {command}"
    ),
    "its budget is reached: ${spent} of ${limit}": "タスクの予算に達しました: ${limit} のうち ${spent}",
    "the agent's budget of today is reached: ${spent} of ${limit}": (
        "エージェントの本日の予算に達しました: ${limit} のうち ${spent}"
    ),
    "the budget of today is reached: ${spent} of ${limit}": "本日の予算に達しました: ${limit} のうち ${spent}",
    "the budget of the project is reached: ${spent} of ${limit}": (
        "プロジェクトの予算に達しました: ${limit} のうち ${spent}"
    ),
    "only {agents} could review it, and has worked on it": (
        "レビューできるのは {agents} だけですが、すでにこの作業に関わっています"
    ),
    'review.agent names "{agent}", {own_none}, and no other agent can do "review"': (
        'review.agent の "{agent}" について: {own_none}。ほかに "review" ができるエージェントもいません'
    ),
    "there is no such agent, or no adapter is chosen for it (agents in .genba/config.yaml)": (
        "そのエージェントがないか、アダプターが選ばれていません(.genba/config.yaml の agents)"
    ),
    # ── parts of a task ──────────────────────────────────────────────────────────────────────────────────────────────
    "a part of its task cannot go on": "タスクの部分の 1 つが先へ進めません",
    "a subtask has no agent": "タスクの部分の 1 つに担当者がいません",
    "the parts of its task have ended": "タスクの部分がすべて終わりました",
    "something happened to a part of its task": "タスクの部分の 1 つに変化がありました",
    # ── plans and reviews ────────────────────────────────────────────────────────────────────────────────────────────
    "the plan cannot be used, it has 1 problem. Propose the whole plan again, without them.": (
        "計画は使えません。問題が 1 件あります。問題を除いて、計画全体をもう一度提案してください。"
    ),
    "the plan cannot be used, it has {count} problems. Propose the whole plan again, without them.": (
        "計画は使えません。問題が {count} 件あります。問題を除いて、計画全体をもう一度提案してください。"
    ),
    "the plan was rejected": "計画は却下されました",
    "a person rejected it": "人間が却下しました",
    "it has {count} parts, and at most {most} are allowed": "部分が {count} 件あります。上限は {most} 件です",
    "a plan cannot give leave to change protected paths": "計画は保護されたパスの変更を許可できません",
    "leave it out: only a person gives it": "取り除いてください。許可できるのは人間だけです",
    "#{number} has {depth} tasks above it, and at most {most} levels of parts are allowed": (
        "#{number} の上位に {depth} 件のタスクがあります。部分の階層の上限は {most} 段です"
    ),
    "a task that needs no parts has one part: all of it": (
        "分ける必要のないタスクでは、全体を 1 つの部分にしてください"
    ),
    "is empty": "空です",
    "must be one line of text": "1 行のテキストにしてください",
    "has {count} parts, and at most {most} are allowed": "部分が {count} 件あります。上限は {most} 件です",
    "join those that belong together": "関連するものをまとめてください",
    '"{key}" is the key of subtasks[{at}] already': '"{key}" はすでに subtasks[{at}] のキーです',
    '"{title}" is the title of a part that is there already': '"{title}" はすでにある部分のタイトルです',
    '"{title}" is the title of the task itself': '"{title}" はタスク自身のタイトルです',
    '"{title}" is the title of subtasks[{at}] already': '"{title}" はすでに subtasks[{at}] のタイトルです',
    '"{key}" is not a key': '"{key}" はキーとして使えません',
    "small letters, digits, - and _, at most 40: login-form": "英小文字、数字、- と _ で 40 文字以内。例: login-form",
    '"{type}" is not a type that a plan can give; it brings leave to change tests, which only a person gives': (
        '"{type}" は計画で指定できる種類ではありません。テストの変更を許可する種類で、指定できるのは人間だけです'
    ),
    '"{type}" is not a type that a plan can give': '"{type}" は計画で指定できる種類ではありません',
    '"{agent}" is not an agent here': '"{agent}" というエージェントはここにはいません',
    "leave it empty": "空のままにしてください",
    "has {count} patterns, and at most {most} are allowed": "パターンが {count} 件あります。上限は {most} 件です",
    "name folders: src/**": "フォルダーを指定してください: src/**",
    "a pattern relative to the repository: src/login/**": "リポジトリからの相対パターンにしてください: src/login/**",
    "has an empty pattern": "空のパターンがあります",
    "{path} is too long, or not one line of text": "{path} は長すぎるか、1 行のテキストではありません",
    "{path} is not a path inside of the repository": "{path} はリポジトリ内のパスではありません",
    "{path} is inside of git's own folder": "{path} は git 自身のフォルダーの中です",
    "{path} is protected: work that changes it would be rejected": (
        "{path} は保護されています。変更する作業は却下されます"
    ),
    "has {count} goals, and at most {most} are allowed": "ゴールが {count} 件あります。上限は {most} 件です",
    "one line, such as file_exists: docs/login.md; types: {types}": (
        "1 行で書いてください。例: file_exists: docs/login.md。種類: {types}"
    ),
    "{goal} with `{field}`: a goal that an agent writes runs nothing and asks no other host": (
        "`{field}` を持つ {goal}: エージェントが書くゴールは何も実行できず、ほかのホストにも問い合わせられません"
    ),
    "{goal} holds for every task by itself, and is not a plan's to set": (
        "{goal} はすべてのタスクに常に適用され、計画では設定できません"
    ),
    "allowed: {values}": "許可される値: {values}",
    "is longer than {most} characters": "{most} 文字を超えています",
    "{name} is more than {most}": "{name} は {most} を超えています",
    '"{key}" is no key of this plan': '"{key}" はこの計画のキーではありません',
    "the parts wait for each other in a circle: {circle}": "部分が互いに待ち合って循環しています: {circle}",
    "take one of these dependencies away": "この依存関係のどれかを取り除いてください",
    "has {count} characters, and at most {most} are allowed": "{count} 文字あります。上限は {most} 文字です",
    "did you mean {known}?": "{known} のことですか?",
    "known: {known}": "使える値: {known}",
    "unknown key": "不明なキーです",
    "is required and missing": "必須ですが、ありません",
    '"{value}" is not one of: {choices}': '"{value}" は次のいずれでもありません: {choices}',
    '"{value}" is not one of its kinds': '"{value}" は使える種類ではありません',
    "expected {wanted}, got {found}": "{wanted} が必要ですが、{found} です",
    "expected a list of goals": "ゴールのリストが必要です",
    "has {count} of them, and at most {most} are allowed": "{count} 件あります。上限は {most} 件です",
    "name those that matter": "重要なものだけを挙げてください",
    "say what is wrong and why it matters": "何が問題で、なぜ重要かを書いてください",
    "wants changes, and no finding says which": "変更を求めていますが、内容を示す所見がありません",
    "name a finding that is `must` or `should`, or approve": "`must` か `should` の所見を挙げるか、承認してください",
    "approves, and a finding says what must be changed first": (
        "承認していますが、先に変更すべき点を挙げた所見があります"
    ),
    "`changes`, or a finding that is no `must`": "`changes` にするか、所見を `must` 以外にしてください",
    "the verdict cannot be used. Give the whole verdict again.": (
        "判定は使えません。判定全体をもう一度示してください。"
    ),
    "and {count} more": "ほか {count} 件",
    # ── pull requests ────────────────────────────────────────────────────────────────────────────────────────────────
    "pull request #{number}: {own_reasons}. Make the changes that are asked for, and commit. "
    "What others wrote stands below.": (
        "プルリクエスト #{number}: {own_reasons}。求められた変更を行い、コミットしてください。"
        "他者が書いた内容は以下のとおりです。"
    ),
    "pull request #{number}: {own_reasons}. Make the checks pass, and commit. What others wrote stands below.": (
        "プルリクエスト #{number}: {own_reasons}。チェックが合格するように直し、コミットしてください。"
        "他者が書いた内容は以下のとおりです。"
    ),
    "pull request #{number} conflicts with {target}. {target_too} is merged into the branch, with markers where the "
    "two conflict. Keep what both sides want, remove every marker, and commit.": (
        "プルリクエスト #{number} は {target} とコンフリクトしています。{target_too} はブランチにマージ済みで、"
        "コンフリクトした箇所にはマーカーがあります。両方の意図を残し、マーカーをすべて取り除いてコミットしてください。"
    ),
    "pull request #{number} conflicts with {target}": "プルリクエスト #{number} は {target} とコンフリクトしています",
    "pull request #{number}: {own_reasons}": "プルリクエスト #{number}: {own_reasons}",
    "Pull request #{number} was closed without a merge. Shall the work go on, and how?": (
        "プルリクエスト #{number} はマージされずにクローズされました。作業を続けますか? どのように続けますか?"
    ),
    # ── frames of other sentences ────────────────────────────────────────────────────────────────────────────────────
    "{status}, and the body does not contain {text}": "{status} で、本文に {text} が含まれていません",
    "{status}, and the body is too long to be read as JSON": "{status} で、本文が長すぎて JSON として読めません",
    "{status}, and the body is no JSON that can be read": "{status} で、本文を JSON として読めません",
    "{status}, and there is nothing at {path}": "{status} で、{path} に何もありません",
    "{status}, wanted {wanted}": "{status}(期待値: {wanted})",
    "{output} (exit code {code})": "{output}(終了コード {code})",
    "rejected: goals_not_met ({names})": "却下: goals_not_met({names})",
    "rejected: missing_artifacts ({names})": "却下: missing_artifacts({names})",
    "{own_first}; {own_rest}": "{own_first}; {own_rest}",
    "missing: {what}": "不足: {what}",
    "{check}: {own_detail}": "{check}: {own_detail}",
}
"""What can stand by itself."""

PARTS: dict[str, str] = {
    "{own_first} and {count} more": "{own_first} ほか {count} 件",
    "1 attempt": "1 回の試行",
    "{count} attempts": "{count} 回の試行",
    "failed: {own_checks}": "失敗: {own_checks}",
    "{author} wants changes": "{author} が変更を求めています",
}
"""What stands in a sentence only."""

LOSSES: dict[str, str] = {
    "{own_first} and {count} more": "{own_first} ほか {count} 件",
    "removes {own_what} ({path})": "{own_what} を削除({path})",
    "changes {own_what} ({path})": "{own_what} を変更({path})",
    "empties {own_what} ({path})": "{own_what} を空洞化({path})",
    "skips by {own_what} ({path})": "{own_what} によってスキップ({path})",
    "skips {own_what} ({path})": "{own_what} をスキップ({path})",
    "adds {own_what} ({path})": "{own_what} を追加({path})",
    "breaks {own_what} ({path})": "{own_what} を破壊({path})",
    "replaces {own_what} ({path})": "{own_what} を置き換え({path})",
    "cuts short {own_what} ({path})": "{own_what} で打ち切り({path})",
    "removes {own_what}": "{own_what} を削除",
    "changes {own_what}": "{own_what} を変更",
    "empties {own_what}": "{own_what} を空洞化",
    "skips by {own_what}": "{own_what} によってスキップ",
    "skips {own_what}": "{own_what} をスキップ",
    "adds {own_what}": "{own_what} を追加",
    "breaks {own_what}": "{own_what} を破壊",
    "replaces {own_what}": "{own_what} を置き換え",
    "cuts short {own_what}": "{own_what} で打ち切り",
    "a call that ends the whole run on import": "インポート時に実行全体を終わらせる呼び出し",
    "a call that ends the whole run": "実行全体を終わらせる呼び出し",
    "a change to what runs the tests": "テストの実行に関わる変更",
    "a way out on import": "インポート時の脱出",
    "a file that Python cannot read any more": "Python が読めなくなったファイル",
    "code that runs beside the tests": "テストの周辺で実行されるコード",
    "the plugin {name}": "プラグイン {name}",
    "all but {what}": "{what} 以外のすべて",
    "the whole file": "ファイル全体",
    "{test} with more cases": "ケースの増えた {test}",
}
"""What a branch takes from the tests of its base."""
