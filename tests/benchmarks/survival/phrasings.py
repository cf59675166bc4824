"""How a fact is said: several ways for each kind, in several languages.

``{v}`` stands for the value, ``{s}`` for what the value is of, ``{o}`` for the one before it.
"""

SAID: dict[str, tuple[str, ...]] = {
    "path": (
        "The settings that count are in {v}.",
        "Look at {v} first, the rest follows from it.",
        "Everything was moved to {v} last week.",
        "配置文件现在放在 {v}。",
        "Die Vorlage liegt unter {v}.",
    ),
    "url": (
        "The page that explains it is {v}.",
        "It is all written up at {v}, including the rollback.",
        "詳しい手順は {v} にあります。",
        "See {v} for the dashboard.",
    ),
    "id": (
        "The run that went wrong is {v}.",
        "It broke with {v} and not before.",
        "请以 {v} 为准。",
        "The one to compare with is {v}.",
    ),
    "ticket": (
        "Please send questions about it to {v}.",
        "This belongs to {v}.",
        "It was promised in {v}, so refer to that.",
        "Zuständig ist {v}.",
    ),
    "version": (
        "It has to keep working with {v}.",
        "The regression came in with {v}.",
        "У клиента стоит {v}.",
        "They are all on {v} by now.",
    ),
    "quantity": (
        "We measured {v} before the change.",
        "Anything above {v} counts as a failure.",
        "目标是 {v}，不能再多。",
        "The budget for it is {v}.",
    ),
    "date": (
        "It goes live on {v}.",
        "The old certificate runs out on {v}.",
        "締め切りは {v} です。",
        "The audit covers everything since {v}.",
    ),
    "name": (
        'It is called "{v}" in the code.',
        "The culprit is `{v}`, as far as I can tell.",
        "内部では「{v}」と呼ばれています。",
        "Everyone refers to it as “{v}”.",
    ),
    "constraint": (
        "Never restart the {v} while a backup is running.",
        "You must ask me before you touch the {v}.",
        "Only write to the {v} through the import tool.",
        "Do not mention the {v} in anything that customers can read.",
        "Please always leave the {v} for the very end.",
        "I would rather keep the {v} out of the weekly report.",
        "不要在任何情况下删除 {v} 的数据。",
        "Bitte niemals den {v} ohne Rücksprache verändern.",
        "{v} には絶対に直接書き込まないでください。",
    ),
    "pin": (
        "Keep in sight: what is done here is signed off by the {v} group and by nobody else.",
        "For the whole of this work: the fallback is the {v}, whatever the tools say.",
        "Standing order: reports go to the {v} desk.",
    ),
    "decision": (
        "I decided to put the retries into the {v}, because the old place blocks the writers.",
        "We go with the {v}: it is slower, but it can be undone.",
        "I chose the {v} over the alternative since the tests already cover it.",
        "Ich habe mich für den {v} entschieden, weil er ohne Sperren auskommt.",
        "我决定采用 {v}，因为它不需要停机。",
    ),
    "commitment": (
        "I will clean up the {v} once the import is through.",
        "Still open: the {v} has to be switched back before anyone is told.",
        "I promised to come back to the {v} after the review.",
        "Before the end I still owe you a check of the {v}.",
        "之后我会再检查一遍 {v}。",
    ),
    "update": (
        "From now on {s} is {v}.",
        "Correction: {s} is {v}, nothing else.",
        "I set {s} to {v}.",
        "{s} 改为 {v}。",
    ),
    "changed": (
        "We changed {s} from {o} to {v}.",
        "{s} was {o}; it is {v} now.",
    ),
}
"""Sentences of user and agent by kind; "changed" is an update that names the value before it."""

PRINTED: dict[str, tuple[str, ...]] = {
    "path": ("config_file = {v}", "loaded {v} (ok)", "  -> {v}"),
    "url": ("upstream: {v}", "redirected to {v}", '"href": "{v}"'),
    "id": ("commit {v}", '"request_id": "{v}"', "resuming {v} ..."),
    "ticket": ("owner: {v}", '"assignee": "{v}"', "escalated to {v}"),
    "version": ("installed: {v}", '"version": "{v}"', "running {v}"),
    "quantity": ("p95 = {v}", "total: {v}", '"measured": "{v}"'),
    "date": ("expires: {v}", '"scheduled": "{v}"', "last full run {v}"),
    "name": ("symbol: {v}", 'undefined name "{v}"', "job {v} queued"),
    "update": ("{s}: {v}", "{s} = {v}", '"{s}": "{v}"'),
}
"""Lines of tool results by kind."""

CALLED: dict[str, tuple[tuple[str, str], ...]] = {
    "path": (("read_file", "path"), ("write_file", "target")),
    "url": (("fetch", "url"), ("open_page", "address")),
    "id": (("show_run", "id"), ("checkout", "revision")),
    "ticket": (("look_up", "ticket"), ("notify", "recipient")),
    "version": (("install", "version"), ("compare", "against")),
    "quantity": (("set_limit", "value"), ("check_quota", "expected")),
    "date": (("schedule", "on"), ("list_runs", "since")),
    "name": (("find_symbol", "name"), ("rename", "to")),
}
"""Tool and argument by kind."""

SUBJECTS: tuple[tuple[str, str], ...] = (
    ("the upload timeout", "quantity"),
    ("the pinned release", "version"),
    ("the cut-over date", "date"),
    ("the export folder", "path"),
    ("the reviewer address", "ticket"),
)
"""What changes in the course of a thread, and the kind of its values."""
