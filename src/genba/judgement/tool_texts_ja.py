"""What the tools of the workflow say of themselves, in Japanese: each English text with its translation."""

TEXTS: dict[str, str] = {
    # ── the server, and what comes next ──────────────────────────────────────────────────────────────────────────────
    "This server leads you through a task of the project. Call authenticate, then call get_next_action and do what its "
    "instruction says, again and again, until the action is exit.": (
        "このサーバーは、プロジェクトのタスクの進め方を案内します。authenticate を呼び出し、"
        "次に get_next_action を呼び出して、返された instruction に従ってください。"
        "action が exit になるまで、これを繰り返してください。"
    ),
    "Call get_next_action with this session_token, and do what it says.": (
        "この session_token で get_next_action を呼び出し、返された指示に従ってください。"
    ),
    "Call get_next_action.": "get_next_action を呼び出してください。",
    "Go on with what you were doing.": "行っていた作業を続けてください。",
    "Stop.": "ここで終了してください。",
    # ── the tools, as they are listed ────────────────────────────────────────────────────────────────────────────────
    "Begin a session": "セッションを始める",
    "Show who you are and get a session token. Call this first, once. "
    "Where your connection carries your secret, call it without arguments.": (
        "自分が誰かを示し、セッショントークンを受け取ります。最初に一度だけ呼び出してください。"
        "接続に秘密が含まれている場合は、引数なしで呼び出してください。"
    ),
    "What to do next": "次に行うこと",
    "The one thing to do next, with an instruction. Do what it says, then call this again, until the "
    "action is exit. When there is only something to wait for, the call is held until it happens.": (
        "次に行うことを 1 つ、instruction とともに返します。それに従ってから、"
        "action が exit になるまで再び呼び出してください。待つことしかない場合は、変化があるまで応答しません。"
    ),
    "My task": "担当タスク",
    "Your task in full: what is to be done, where, and what it is held to.": (
        "担当タスクの全文です。行うこと、作業場所、満たすべき条件を返します。"
    ),
    "Create one subtask": "サブタスクを 1 つ作る",
    "Make one subtask of your task. Several are better made at once with create_tasks_batch.": (
        "担当タスクのサブタスクを 1 つ作ります。複数の場合は create_tasks_batch で一度に作ってください。"
    ),
    "Create subtasks": "サブタスクを作る",
    "Make the subtasks of your task at once, all or none, with what depends on what.": (
        "担当タスクのサブタスクを、依存関係とともに一度に作ります。すべて作るか、1 つも作らないかです。"
    ),
    "Move a task": "タスクの状態を変える",
    "Workers: begin a subtask (in_progress), or end it (done). Managers: cancel a subtask. "
    "Your own task is ended by report_completed.": (
        "worker: サブタスクを開始 (in_progress) または終了 (done) します。manager: サブタスクを取り消します。"
        "担当タスクそのものは report_completed で終了します。"
    ),
    "Give a subtask to an agent": "サブタスクをエージェントに割り当てる",
    "Managers: give a subtask to an agent that list_workers names.": (
        "manager: list_workers が返すエージェントにサブタスクを割り当てます。"
    ),
    "Say that the task is done": "タスクの完了を報告する",
    "Say that your task is done. Every goal is checked on your commits now; if one fails, "
    "you receive the reason, and the next action is rework. Commit first.": (
        "担当タスクの完了を報告します。すべてのゴールがコミットについて今すぐ検査されます。失敗すると理由が返され、"
        "次の action は rework になります。先にコミットしてください。"
    ),
    "Say that you cannot go on": "続けられないことを報告する",
    "Say what you need from a person. A person is asked.": (
        "ほかの人しか用意できない、必要なものを伝えます。人間に質問されます。"
    ),
    "Write down where you are": "進み具合を書き残す",
    "Keep what you know for the next session on this task, which may be you.": (
        "このタスクを引き継ぐエージェント(自分のこともあります)のために、分かっていることを残します。"
    ),
    "Send a message": "メッセージを送る",
    "Tell another agent something, or all of them with the type broadcast.": (
        "ほかのエージェントに伝えます。type を broadcast にすると全員に伝わります。"
    ),
    "Read messages": "メッセージを読む",
    "Messages to you, each once, oldest first. get_my_task shows all that are open.": (
        "ほかのエージェントからのメッセージを、古い順に一度ずつ返します。"
        "未解決のものはすべて get_my_task で分かります。"
    ),
    "List tasks": "タスクの一覧",
    "Your task and everything below it.": "担当タスクと、その下にあるすべてのタスクです。",
    "Show a task": "タスクを見る",
    "One task of those that list_tasks tells, in full.": "list_tasks が返すタスクのうち 1 つの全文です。",
    "List agents": "エージェントの一覧",
    "Managers: the agents that can be given work, those with the least to do first.": (
        "manager: 作業を割り当てられるエージェントを、抱えている作業が少ない順に返します。"
    ),
    "Help": "ヘルプ",
    "Which tools you may call now, and what each does.": "今呼び出せるツールと、それぞれの働きを返します。",
    "End the session": "セッションを終える",
    "Leave. Call it when the action is exit; the token is worth nothing afterwards.": (
        "セッションを終えます。action が exit のときに呼び出してください。以後、トークンは使えません。"
    ),
    # ── their arguments ──────────────────────────────────────────────────────────────────────────────────────────────
    "Your id, as you received it. Leave it out if you got none.": (
        "知らされた自分の id。知らされていない場合は省略します。"
    ),
    "Your passkey. Leave it out where the connection carries it, which is the usual way.": (
        "自分の passkey。通常は接続に含まれているので省略します。"
    ),
    "The project that you work for; leave it out for the only one.": (
        "作業するプロジェクト。1 つしかない場合は省略します。"
    ),
    "The token that authenticate gave. Leave it out where the connection carries it.": (
        "authenticate が返したトークン。接続に含まれている場合は省略します。"
    ),
    "What is to be done, in one line.": "行うことを 1 行で。",
    "What the agent needs to know to do it.": "実行に必要な情報。",
    "A task type of the project.": "プロジェクトのタスクの種類。",
    "How urgent it is.": "優先度。",
    "Its name within this call, for depends_on of the others.": (
        "この呼び出しの中での名前。ほかのサブタスクの depends_on で使います。"
    ),
    "What must be done before: local ids of this call, or numbers of subtasks that are there.": (
        "先に完了すべきもの: この呼び出しの local_id、または既存のサブタスクの番号。"
    ),
    "Checks that must pass before it is done. They name no command, script, serve or address.": (
        "完了までに合格すべき検査。コマンド、スクリプト、serve、アドレスは指定できません。"
    ),
    'One check, such as "file_exists:docs/api.md" or {"type": "tests_pass", "command": "pytest -q"}': (
        '1 つの検査。例: "file_exists:docs/api.md" または {"type": "tests_pass", "command": "pytest -q"}'
    ),
    "Paths it will write, as patterns.": "書き込むパスのパターン。",
    "Managers only: the agent that is to do it.": "manager のみ: 担当するエージェント。",
    "A name of your own for this call: called again, it makes nothing twice.": (
        "この呼び出しに付ける名前。同じ名前で再び呼び出しても、二重には作られません。"
    ),
    "A subtask to be made.": "作るサブタスク。",
    "The subtasks, all or none.": "サブタスク。すべて作るか、1 つも作らないかです。",
    "The number of the task.": "タスクの番号。",
    "What it becomes.": "変更後の状態。",
    'Why. "atomic" with your own task: it needs no subtasks.': (
        '理由。担当タスクに "atomic" を指定すると、サブタスクが不要であることを意味します。'
    ),
    "The number of the subtask.": "サブタスクの番号。",
    "Its name, as list_workers tells it.": "list_workers が返す名前。",
    "What this agent should know: an answer, a hint.": "このエージェントに伝えること: 回答、ヒント。",
    "What you did. It is kept; whether it is done is checked, not read.": (
        "行ったこと。保存されます。完了したかどうかは、この文ではなく検査で決まります。"
    ),
    "What is in the way, and what you need.": "妨げになっていることと、必要なこと。",
    "Managers only: the subtask that a person must decide about; else your own task.": (
        "manager のみ: 人間の判断が必要なサブタスク。省略すると担当タスク。"
    ),
    "What is done.": "済んだこと。",
    "What you learnt.": "分かったこと。",
    "What is in the way.": "妨げになっていること。",
    "What comes next.": "次に行うこと。",
    "Whom a broadcast reaches.": "broadcast が届く範囲。",
    "The message.": "メッセージ。",
    "The agent that it is for, by name.": "宛先のエージェントの名前。",
    "The task whose agent it is for; without both, the agent of the task above yours.": (
        "宛先のエージェントが担当するタスク。どちらも省略すると、1 つ上のタスクの担当者。"
    ),
    "instruction goes to one task, broadcast to all agents.": (
        "instruction は 1 つのタスクに、broadcast はすべてのエージェントに届きます。"
    ),
    "Of a broadcast: all agents of the project, or of the tree of tasks that yours is in.": (
        "broadcast の範囲: プロジェクトのすべてのエージェント、または担当タスクを含むツリーのエージェント。"
    ),
    "Whether they count as read from now on.": "既読にするかどうか。",
    "Only tasks in this state.": "この状態のタスクのみ。",
    "The tool you want to know about; else all that you may call now.": (
        "知りたいツール。省略すると、今呼び出せるすべてのツール。"
    ),
    "Why you leave, where it is not obvious.": "終える理由(明らかでない場合)。",
    # ── their answers ────────────────────────────────────────────────────────────────────────────────────────────────
    "Why the call was refused; nothing was changed.": "呼び出しが拒否された理由。何も変更されていません。",
    "What to do now, in one word.": "今行うことを 1 語で。",
    "What an agent does with the parts of its task.": "エージェントが担当タスクの部分に対して行うこと。",
    "A task or a subtask, as far as the next action depends on it.": (
        "タスクまたはサブタスク。次の action を決めるのに必要な項目です。"
    ),
    "Why a task cannot go on.": "タスクを続けられない理由。",
    "Why a claim was not believed.": "完了の報告が認められなかった理由。",
    "What an agent writes down for the next session.": "引き継ぐエージェントのために書き残す内容。",
    "An agent that a manager can give work to.": "manager が作業を割り当てられるエージェント。",
    # ── help ─────────────────────────────────────────────────────────────────────────────────────────────────────────
    "Get a session token. Called once, before everything else.": (
        "セッショントークンを受け取ります。最初に一度だけ呼び出します。"
    ),
    "The one thing to do next. Call it after each thing that you did.": (
        "次に行うことを 1 つ返します。何かを行うたびに呼び出してください。"
    ),
    "Everything that is known of your task: text, goals, branch, notes, subtasks.": (
        "担当タスクについて分かっていることすべて: 本文、ゴール、ブランチ、メモ、サブタスク。"
    ),
    "Add one subtask to the plan of your task.": "担当タスクの計画にサブタスクを 1 つ加えます。",
    "Make the whole plan of your task at once; with a key it can be sent again safely.": (
        "担当タスクの計画全体を一度に作ります。key を付ければ、安全に送り直せます。"
    ),
    "Workers begin and end steps of their plan. Managers cancel a subtask.": (
        "worker は計画のステップを開始、終了します。manager はサブタスクを取り消します。"
    ),
    "Managers give a subtask to a worker, with a note if you like.": (
        "manager がサブタスクを worker に割り当てます。必要ならメモを付けられます。"
    ),
    "Say that your task is done. It is verified, and you get what is missing.": (
        "担当タスクの完了を報告します。検証され、足りないものが返されます。"
    ),
    "Say that you cannot go on, and why. Managers can name a subtask for a person to decide on.": (
        "続けられないことと、その理由を報告します。manager は人間の判断が必要なサブタスクを指定できます。"
    ),
    "Write down where you are, for the next session.": ("引き継ぐエージェントのために、進み具合を書き残します。"),
    "Tell something to the agent above you, to one below, or to all with the type broadcast.": (
        "上または下のエージェントに伝えます。type を broadcast にすると全員に伝わります。"
    ),
    "Messages to you, each once.": "ほかのエージェントからのメッセージを、一度ずつ返します。",
    "One of those tasks.": "そのうち 1 つのタスクです。",
    "Who a subtask can be given to, and how much they have to do.": (
        "サブタスクを割り当てられるエージェントと、その作業量です。"
    ),
    "This.": "このヘルプです。",
    "You stop here. Only when the next action is exit, or you cannot continue.": (
        "ここで終了します。指示された場合、または続けられない場合にのみ使います。"
    ),
}
