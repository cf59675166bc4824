"""The rest of a thread: what users, agents and tools say when nothing of it will matter later."""

import random

from tests.benchmarks.survival.values import NOUNS, ROLES, digits, hexes

SUBJECTS = (
    "the nightly import", "the second worker", "the cleanup job", "the review page", "the parser",
    "the login form", "the queue reader", "the export", "the summary mail", "the retry logic",
    "the search box", "the billing view", "the test suite", "the staging cluster", "the tracer",
)  # fmt: skip
VERBS = (
    "looks fine apart from", "was waiting for", "no longer depends on", "still reads from",
    "hands its results to", "was slowed down by", "has nothing to do with", "starts before",
    "logs too much about", "can be tested without", "shares a lock with", "was copied from",
)  # fmt: skip
ENDINGS = (
    "so I am going on with the next part.", "which explains the noise in the log.",
    "but that is not what we are after.", "as the older notes already suggested.",
    "and nobody seems to have noticed.", "so this can wait until later.",
    "which is easy to see in the trace.", "and I could reproduce it once.",
)  # fmt: skip
ELSEWHERE = (
    "今天先把测试跑完，再看一下日志里有没有新的错误，没有的话就继续下一步。",
    "这个部分的逻辑比想象的复杂，我先读一遍代码，然后再说怎么改比较稳妥。",
    "ログを見る限り、この処理は問題なく終わっているので、次の確認に進みます。",
    "画面の表示が少し遅いようですが、原因はまだはっきりしていません。",
    "테스트는 대부분 통과했지만 몇 가지 경고가 남아 있어서 다시 확인해 보겠습니다.",
    "Сначала посмотрю, что осталось в очереди, потом вернусь к разбору ошибок импорта.",
    "Ich sehe mir zuerst die Protokolle an und gehe dann die offenen Punkte der Reihe nach durch.",
    "Primero reviso los registros y después sigo con las pruebas que todavía fallan a veces.",
    "راجعت السجلات ولم أجد شيئا غير عادي، لذلك سأنتقل إلى الخطوة التالية الآن.",
    "ผมจะตรวจสอบบันทึกอีกครั้งก่อน แล้วค่อยทำขั้นตอนถัดไปตามที่ตกลงกันไว้",
)
OPENING = "Please go through the whole pipeline, part by part, and bring it into shape."
"""How a thread begins."""
FOREIGN_SHARE = 0.2
"""Share of the sentences of user and agent that are not English."""
QUIET = (
    "ok", "checking dependencies", "nothing to do", "warming up", "skipped, unchanged", "retrying",
    "return self", "for item in items", "yield item", "passed", "collecting", "empty", "stale",
    "waiting for the lock", "lock acquired", "rendering", "done", "cache hit", "cache miss",
)  # fmt: skip
TOOLS = ("run", "list_files", "read_log", "query", "grep")
LINES = (14, 26)
"""Lines of an ordinary tool result, from and to."""
LONG_LINES = (80, 120)
"""Lines of a long one: about 5,000 characters, more than some systems show a summariser."""
LONG_SHARE = 0.15
"""Share of the results that are long."""
INCIDENTAL = 2
"""References in an ordinary tool result that nothing will ever need; in a long one three times
as many. They compete with the planted ones for room."""


def sentence(rng: random.Random) -> str:
    """One sentence of user or agent."""
    if rng.random() < FOREIGN_SHARE:
        return rng.choice(ELSEWHERE)
    first, second = rng.sample(SUBJECTS, 2)
    return f"{first.capitalize()} {rng.choice(VERBS)} {second}, {rng.choice(ENDINGS)}"


def sentences(rng: random.Random, least: int, most: int) -> list[str]:
    """Several sentences."""
    return [sentence(rng) for _ in range(rng.randint(least, most))]


def output(rng: random.Random, *, may_be_long: bool = True) -> list[str]:
    """The lines of a tool result."""
    long = may_be_long and rng.random() < LONG_SHARE
    lines = [_line(rng) for _ in range(rng.randint(*(LONG_LINES if long else LINES)))]
    for _ in range(3 * INCIDENTAL if long else INCIDENTAL):
        lines.insert(rng.randint(0, len(lines)), _incidental(rng))
    return lines


def _line(rng: random.Random) -> str:
    first, second = rng.sample(NOUNS, 2)
    return f"[{rng.choice(ROLES)}] {first} {rng.choice(QUIET)}, {second} {rng.choice(QUIET)}"


def _incidental(rng: random.Random) -> str:
    name = rng.choice(NOUNS)
    return rng.choice([
        f"opened /tmp/{name}/{hexes(rng, 6)}.log",
        f"{name} took {digits(rng, 4)} us",
        f"trace {hexes(rng, 16)} sampled",
        f"{name} at build {digits(rng, 6)}",
    ])  # fmt: skip
