"""How far the token estimate is from o200k_base, by kind of content.

    python -m tests.benchmarks.counting_error

Prints a line for each kind: characters, tokens by the true vocabulary (from the bpe-openai wheel,
no network), by the estimate, by LangChain's `count_tokens_approximately`, and both errors. The
texts were written for this file or are generated; `tests/unit/test_estimate.py` holds each kind to
15%.
"""

import base64
import hashlib
import json
import random
import time
import uuid

from langchain_core.messages import HumanMessage
from langchain_core.messages.utils import count_tokens_approximately

from langgraph_compaction.plan.counting import token_counter
from langgraph_compaction.plan.estimate import estimate_tokens

PROSE = {
    "English": """\
The nightly export failed for the third time this week, and nobody noticed until a customer called.
I looked through the logs and found that the disk had filled up shortly after two in the morning;
the cleanup job that should have removed the old archives was disabled during the migration and
never turned on again. I have deleted everything older than thirty days, restarted the worker, and
opened a ticket so that we do not forget the alert. Could you please check whether the finance
report is complete now? If it is not, I'd rather run the whole batch again than patch single rows.
""",
    "Chinese": """\
今天早上我把服务器重新启动了一遍，但是问题还是没有解决。日志显示，数据库的连接数在凌晨两点左右
达到了上限，之后所有新的请求都在等待，最后全部超时。我怀疑是昨天晚上发布的新版本没有正确释放连接，
所以先回滚到了上一个版本，同时请同事帮忙检查代码。用户那边已经发了通知，说明我们正在处理，预计
中午之前可以恢复正常。如果你有时间，麻烦看一下报表里的数字是不是对的，特别是上个月的销售额，
因为财务部门下午要用。另外，会议改到了星期四，地点不变，大家记得带上自己的电脑。
""",
    "Chinese, traditional": """\
昨天晚上系統更新之後，有幾位客戶反映無法登入帳號，畫面一直停在讀取中。我們檢查了伺服器的紀錄，
發現是憑證過期造成的問題，已經在今天早上更換完成。如果您還是看到同樣的錯誤訊息，請先清除瀏覽器
的快取資料，再重新整理頁面。另外，下個星期二凌晨會進行資料庫維護，時間大約兩個小時，期間所有
服務都會暫停。造成不便，我們感到非常抱歉，有任何問題歡迎隨時與我們聯絡。
""",
    "Japanese": """\
昨日の夜に新しいバージョンを公開しましたが、今朝からログインできないという問い合わせが何件か
届いています。サーバーのログを確認したところ、証明書の期限が切れていたことが原因でした。すぐに
更新して、現在は正常に動いています。ただし、古い画面が表示される場合がありますので、ブラウザの
キャッシュを削除してからもう一度お試しください。来週の火曜日にはデータベースのメンテナンスを行う
予定です。ご不便をおかけして申し訳ありません。何か問題があれば、いつでも連絡してください。
""",
    "Korean": """\
어제 밤에 새 버전을 배포한 뒤로 로그인이 되지 않는다는 문의가 여러 건 들어왔습니다. 서버 로그를
확인해 보니 인증서가 만료된 것이 원인이었고, 오늘 아침에 바로 교체했습니다. 지금은 정상적으로
동작하지만, 예전 화면이 계속 보이면 브라우저의 캐시를 삭제한 다음 다시 시도해 주세요. 다음 주
화요일에는 데이터베이스 점검이 있을 예정이며 두 시간 정도 걸릴 것 같습니다. 불편을 드려 죄송하고,
문제가 있으면 언제든지 연락해 주시기 바랍니다. 회의는 목요일 오후 세 시로 변경되었습니다.
""",
    "Thai": """\
เมื่อคืนนี้เราได้อัปเดตระบบเป็นเวอร์ชันใหม่ แต่เช้านี้มีลูกค้าหลายคนแจ้งว่าเข้าสู่ระบบไม่ได้
เมื่อตรวจสอบบันทึกของเซิร์ฟเวอร์แล้วพบว่าใบรับรองหมดอายุ จึงได้เปลี่ยนใหม่เรียบร้อยแล้ว
ตอนนี้ระบบทำงานได้ตามปกติ หากยังเห็นหน้าจอเดิมกรุณาลบข้อมูลในเบราว์เซอร์แล้วลองใหม่อีกครั้ง
วันอังคารหน้าจะมีการบำรุงรักษาฐานข้อมูลประมาณสองชั่วโมง ขออภัยในความไม่สะดวก
หากมีปัญหาใด ๆ สามารถติดต่อเราได้ตลอดเวลา
""",
    "Arabic": """\
قمنا الليلة الماضية بتحديث النظام إلى الإصدار الجديد، لكن عددا من العملاء أبلغونا هذا الصباح أنهم لا
يستطيعون تسجيل الدخول. بعد فحص سجلات الخادم تبين أن الشهادة قد انتهت صلاحيتها، وقد استبدلناها فورا.
النظام يعمل الآن بشكل طبيعي، وإذا ظهرت لكم الصفحة القديمة فيرجى مسح ذاكرة المتصفح ثم المحاولة مجددا.
سنجري يوم الثلاثاء القادم صيانة لقاعدة البيانات تستغرق حوالي ساعتين. نعتذر عن أي إزعاج، ويمكنكم
التواصل معنا في أي وقت.
""",
    "Hindi": """\
कल रात हमने सिस्टम का नया संस्करण जारी किया, लेकिन आज सुबह कई ग्राहकों ने बताया कि वे लॉगिन नहीं कर
पा रहे हैं। सर्वर के लॉग देखने पर पता चला कि प्रमाणपत्र की अवधि समाप्त हो गई थी, इसलिए उसे तुरंत बदल
दिया गया। अब सब कुछ ठीक से काम कर रहा है। अगर आपको पुराना पेज दिखाई दे तो कृपया ब्राउज़र का कैश साफ़
करके दोबारा कोशिश करें। अगले मंगलवार को डेटाबेस की मरम्मत होगी जिसमें लगभग दो घंटे लगेंगे। असुविधा के
लिए हमें खेद है, कोई समस्या हो तो हमसे संपर्क करें।
""",
    "Russian": """\
Вчера вечером мы выпустили новую версию, но сегодня утром несколько клиентов сообщили, что не могут
войти в систему. Мы проверили журналы сервера и выяснили, что истёк срок действия сертификата;
его уже заменили. Сейчас всё работает нормально. Если вы по-прежнему видите старую страницу,
очистите кэш браузера и попробуйте ещё раз. В следующий вторник запланировано обслуживание базы
данных, оно займёт около двух часов. Приносим извинения за неудобства, пишите нам в любое время.
""",
    "German": """\
Gestern Abend haben wir die neue Fassung veröffentlicht, doch heute Morgen meldeten mehrere Kunden,
dass sie sich nicht mehr anmelden können. In den Protokollen des Servers fanden wir den Grund: Das
Zertifikat war abgelaufen. Es wurde sofort ersetzt, und jetzt läuft alles wieder wie gewohnt. Falls
Sie noch die alte Seite sehen, löschen Sie bitte den Zwischenspeicher Ihres Browsers und versuchen
Sie es erneut. Für die Störung möchten wir uns entschuldigen; bei Fragen sind wir gern für Sie da.
""",
    "French": """\
Hier soir, nous avons publié la nouvelle version, mais ce matin plusieurs clients nous ont signalé
qu'ils n'arrivaient plus à se connecter. En lisant les journaux du serveur, nous avons découvert que
le certificat avait expiré ; il a été remplacé aussitôt et tout fonctionne à nouveau. Si vous voyez
encore l'ancienne page, videz le cache de votre navigateur et réessayez. Une opération de
maintenance est prévue mardi prochain, pendant environ deux heures. Toutes nos excuses.
""",
    "emoji": """\
Release is out 🎉🎉🎉 thanks everyone 🙏 👏👏
✅ tests pass ✅ docs updated ⚠️ one flaky job 🐛 ➡️ ticket opened 📝
😀😃😄😁😆😅😂🤣😊😇🙂😉😍😘😋😎🤔😐🙄😴😭😱😡👍👎👌✌️🤞💪🚀🔥✨💯❤️💔🍕🍺☕🌍🌈⭐🏆🎁🎂
👩‍💻 fixes, 👨‍🔬 reviews, 🧑‍🚀 ships. 🇩🇪 🇫🇷 🇯🇵 🇧🇷
""",
}

CODE = {
    "Python": '''\
class RateLimiter:
    """Allow at most `limit` calls in any window of `seconds`."""

    def __init__(self, limit: int, seconds: float, clock: Callable[[], float] = time.monotonic):
        self._limit = limit
        self._seconds = seconds
        self._clock = clock
        self._calls: deque[float] = deque()

    def try_acquire(self) -> bool:
        now = self._clock()
        while self._calls and now - self._calls[0] >= self._seconds:
            self._calls.popleft()
        if len(self._calls) >= self._limit:
            return False
        self._calls.append(now)
        return True


def test_refuses_the_call_over_the_limit():
    limiter = RateLimiter(limit=2, seconds=1.0, clock=lambda: 0.0)
    assert [limiter.try_acquire() for _ in range(3)] == [True, True, False]
''',
    "JavaScript": """\
export async function fetchInvoices(customerId, { signal, pageSize = 50 } = {}) {
  const url = new URL(`/api/v2/customers/${customerId}/invoices`, window.location.origin);
  url.searchParams.set("limit", String(pageSize));
  const response = await fetch(url, { signal, headers: { Accept: "application/json" } });
  if (!response.ok) {
    throw new Error(`Request failed: ${response.status} ${response.statusText}`);
  }
  const { items, nextCursor } = await response.json();
  return { invoices: items.map((item) => ({ ...item, total: item.amount / 100 })), nextCursor };
}

document.querySelectorAll("button[data-action]").forEach((button) => {
  button.addEventListener("click", (event) => dispatch({ type: event.target.dataset.action }));
});
""",
    "SQL": """\
SELECT c.customer_id, c.name, COUNT(o.id) AS orders, SUM(o.total_cents) / 100.0 AS revenue
FROM customers AS c
LEFT JOIN orders AS o ON o.customer_id = c.customer_id AND o.created_at >= '2024-01-01'
WHERE c.country IN ('DE', 'FR', 'IT') AND c.deleted_at IS NULL
GROUP BY c.customer_id, c.name
HAVING COUNT(o.id) > 3
ORDER BY revenue DESC NULLS LAST
LIMIT 100;
""",
    "HTML": """\
<section class="card card--wide" id="billing">
  <h2 class="card__title">Billing address</h2>
  <form action="/settings/billing" method="post" novalidate>
    <label for="street">Street</label>
    <input type="text" id="street" name="street" value="12 Harbour Lane" required>
    <button type="submit" class="button button--primary" disabled>Save changes</button>
  </form>
</section>
""",
    "Markdown": """\
## Decision: keep PostgreSQL

| option     | cost per month | migration | risk   |
|------------|---------------:|-----------|--------|
| PostgreSQL |           $420 | none      | low    |
| DynamoDB   |           $310 | 6 weeks   | high   |

- **Why**: the reporting queries need joins, see [`reports/daily.sql`](reports/daily.sql).
- Revisit when writes exceed *5,000 per second*.

```bash
pg_dump --format=custom --file=backup.dump "$DATABASE_URL"
```
""",
    "diff": """\
diff --git a/src/billing/tax.py b/src/billing/tax.py
index 3f2a9c1..b7d04e2 100644
--- a/src/billing/tax.py
+++ b/src/billing/tax.py
@@ -41,7 +41,9 @@ def vat_rate(country: str, on: date) -> Decimal:
     rates = RATES.get(country.upper())
     if rates is None:
-        raise KeyError(country)
+        raise UnknownCountryError(
+            f"no VAT rate for {country!r}; add it to rates.toml"
+        )
     return max(rate for start, rate in rates if start <= on)
""",
}


def _generated() -> dict[str, str]:
    """Data of each kind, the same at every run."""
    draw = random.Random(7)
    records = [
        {
            "id": draw.randrange(10**6),
            "email": f"user{index}@example.com",
            "roles": draw.sample(["admin", "editor", "viewer", "billing"], 2),
            "balance": round(draw.uniform(-500, 5_000), 2),
            "active": draw.random() < 0.5,
            "created_at": f"2024-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}T08:30:00Z",
        }
        for index in range(40)
    ]
    ids = [str(uuid.UUID(int=draw.getrandbits(128), version=4)) for _ in range(60)]
    lines = [
        f"2024-05-{draw.randint(1, 28):02} {draw.randint(0, 23):02}:{draw.randint(0, 59):02}:07,"
        f"{draw.randint(0, 999):03} {draw.choice(['INFO', 'WARNING', 'ERROR'])} "
        f"[worker-{draw.randint(1, 8)}] app.billing.tasks: "
        f"{draw.choice(['job finished', 'retrying after timeout', 'connection refused by peer'])} "
        f"(job={draw.getrandbits(48):012x}, took {draw.randint(1, 9_000)} ms, "
        f"path=/srv/app/releases/{draw.randint(100, 999)}/tasks/{draw.choice('abcdef')}.py:{index})"
        for index in range(60)
    ]
    colours = [f"\x1b[{draw.randint(31, 36)}m{line[24:60]}\x1b[0m" for line in lines]
    data = draw.randbytes(6_000)
    return {
        "JSON": json.dumps(records),
        "JSON, indented": json.dumps(records, indent=2),
        "base64": base64.b64encode(data).decode(),
        "base64, in lines": base64.encodebytes(data).decode(),
        "base64, URL-safe": base64.urlsafe_b64encode(data).decode(),
        "hex": data.hex(),
        "checksums": "\n".join(hashlib.sha1(line.encode()).hexdigest() for line in lines),
        "UUIDs": "\n".join(ids),
        "log lines": "\n".join(lines),
        "log lines, coloured": "\n".join(colours),
        "numbers": ", ".join(f"{draw.uniform(-1, 1):.6f}" for _ in range(300)),
        "random words": " ".join(
            "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 10)))
            for _ in range(400)
        ),
        "spaces": " " * 20_000,
        "line ends": "\n" * 20_000,
        "indented lines": "        x = 1\n\n" * 200,
        "one letter": "a" * 20_000,
        "one Chinese character": "\u4e2d" * 5_000,
        "rules": "\n".join(["=" * 80, "-" * 60, "*" * 40, "#" * 72] * 20),
    }


SAMPLES = PROSE | CODE | _generated()


def main() -> None:
    exact = token_counter("tiktoken")
    print(f"{'kind':24}{'chars':>8}{exact.name:>22}{'estimate':>10}{'error':>8}{'langchain':>11}")
    for kind, text in SAMPLES.items():
        truth, estimate = exact.text(text), estimate_tokens(text)
        peer = count_tokens_approximately([HumanMessage(text)]) - 4
        print(
            f"{kind:24}{len(text):8,}{truth:22,}{estimate:10,}{estimate / truth - 1:+8.1%}"
            f"{peer / truth - 1:+11.0%}"
        )
    mixed = "\n".join(SAMPLES.values()) * 10
    start = time.process_time()
    estimate_tokens(mixed)
    seconds = time.process_time() - start
    print(f"\nspeed of the estimate: {len(mixed.encode()) / seconds / 1e6:.1f} MB per CPU second")
    print(f"counted by {exact.name}" + (f"; {exact.notice()}" if exact.notice() else ""))


if __name__ == "__main__":
    main()
