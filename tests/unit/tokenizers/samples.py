"""Texts of many kinds, written for these tests, with the number of tokens o200k makes of each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """A text and its true count."""

    o200k: int
    text: str


ENGLISH = (
    Sample(
        172,
        """\
I had another look at the nightly job this morning. It does not fail because of the disk, as we first thought; it fails
because two workers start within the same second and both believe they own the lease. The second one waits for ten
seconds, gives up, and reports success anyway. That explains why nobody noticed for three weeks: the dashboard was green
the whole time, and the only trace of the problem was a file that stayed empty.

What I would like to do is small. The lease gets an owner, the owner writes its start time, and whoever comes second
says so and leaves with a different exit code. We should not try to be clever about retries yet. If it turns out that
people want them, we can add them later, once we know how long a run usually takes on the slower machines.
""",
    ),
    Sample(
        93,
        """\
Please don't touch the billing pages for now. Maria is still talking to the accountant about the rounding rules, and
whatever we change today will have to be changed again on Friday. Work on the import instead: customers keep asking why
their contacts show up twice, and honestly I'd like to know that too. My guess is that we compare e-mail addresses
before trimming them. Start there, write a test that shows the duplicate, and only then fix it.
""",
    ),
    Sample(
        123,
        """\
Caroline moved to Lisbon in the spring of last year, after her sister's wedding. She teaches the piano three days a week
and spends the rest of her time restoring an old sailing boat that she bought from a retired fisherman. On Sundays she
usually calls her parents; her father, who is eighty-one, still asks when she will come home, although he knows the
answer. In July she wants to sail to Madeira with two friends, provided that the engine is repaired by then and the
weather holds. She has promised to bring back a bottle of wine for everybody who helped with the painting.
""",
    ),
)

CODE = (
    Sample(
        288,
        '''\
class LeaseTable:
    """Who works on which lane, and until when."""

    def __init__(self, connection: sqlite3.Connection, *, clock: Callable[[], datetime]) -> None:
        self._connection = connection
        self._clock = clock

    def claim(self, lane: str, owner: str, seconds: int = 300) -> bool:
        now = self._clock()
        expires_at = now + timedelta(seconds=seconds)
        with self._connection:
            row = self._connection.execute(
                "SELECT owner, expires_at FROM lease WHERE lane = ?", (lane,)
            ).fetchone()
            if row is not None and row["owner"] != owner and row["expires_at"] > now.isoformat():
                return False
            self._connection.execute(
                "INSERT INTO lease (lane, owner, expires_at) VALUES (?, ?, ?) "
                "ON CONFLICT (lane) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at",
                (lane, owner, expires_at.isoformat()),
            )
        return True


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args(argv)
    logging.basicConfig(level=logging.DEBUG if options.verbose else logging.INFO)
    return 0
''',
    ),
    Sample(
        326,
        """\
import { useEffect, useState } from "react";
import type { Order, OrderStatus } from "./types";

interface Props {
  customerId: string;
  onSelect?: (order: Order) => void;
}

const LABELS: Record<OrderStatus, string> = {
  open: "Open",
  paid: "Paid",
  cancelled: "Cancelled",
};

export function OrderList({ customerId, onSelect }: Props) {
  const [orders, setOrders] = useState<Order[]>([]);
  const [error, setError] = useState<Error | null>(null);

  useEffect(() => {
    const controller = new AbortController();
    fetch(`/api/customers/${customerId}/orders?limit=50`, { signal: controller.signal })
      .then((response) => {
        if (!response.ok) throw new Error(`Unexpected status ${response.status}`);
        return response.json();
      })
      .then(setOrders)
      .catch((reason) => {
        if (reason.name !== "AbortError") setError(reason);
      });
    return () => controller.abort();
  }, [customerId]);

  if (error) return <p role="alert">{error.message}</p>;
  return (
    <ul className="order-list">
      {orders.map((order) => (
        <li key={order.id} onClick={() => onSelect?.(order)}>
          {order.number} <span className={`status-${order.status}`}>{LABELS[order.status]}</span>
        </li>
      ))}
    </ul>
  );
}
""",
    ),
    Sample(
        203,
        """\
#!/usr/bin/env bash
set -euo pipefail

readonly ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
: "${PYTHON:=python3}"

for version in 3.11 3.12 3.13; do
    if ! command -v "python$version" >/dev/null 2>&1; then
        echo "skip: python$version is not installed" >&2
        continue
    fi
    "python$version" -m venv "$ROOT/.venv-$version"
    "$ROOT/.venv-$version/bin/pip" install --quiet -e "$ROOT[dev]"
    "$ROOT/.venv-$version/bin/python" -m pytest -q "$ROOT/tests" || failed+=("$version")
done

if [[ ${#failed[@]} -gt 0 ]]; then
    printf 'failed on: %s\\n' "${failed[*]}"
    exit 1
fi
""",
    ),
    Sample(
        146,
        """\
static int ring_push(struct ring *r, const void *item, size_t len)
{
\tuint32_t head = atomic_load_explicit(&r->head, memory_order_acquire);
\tuint32_t tail = r->tail;

\tif (len > r->slot_size)
\t\treturn -EINVAL;
\tif (tail - head == r->capacity) {
\t\tr->dropped++;
\t\treturn -EAGAIN;   /* full: the reader is too slow */
\t}
\tmemcpy(r->slots + (size_t)(tail & r->mask) * r->slot_size, item, len);
\tatomic_store_explicit(&r->tail, tail + 1, memory_order_release);
\treturn 0;
}
""",
    ),
)

JSON = (
    Sample(
        327,
        """\
{"type":"assistant","uuid":"0d3b8f7c-52a4-4a0e-9c1d-7be2b1f0a6d3","parentUuid":"5f0f2f86-94a5-4c39-8f26-1d5a7e0c9b11",\
"timestamp":"2026-03-04T09:15:27.482Z","sessionId":"b6c7e0aa-1f3d-4d52-8a55-0e9d6f2c7b48","cwd":"/home/lena/shop",\
"message":{"role":"assistant","model":"example-large-2","content":[{"type":"text","text":"The test fails because the \
fixture is created twice."},{"type":"tool_use","id":"call_0007","name":"Bash","input":{"command":"pytest -q \
tests/test_orders.py","timeout":120000}}],"usage":{"input_tokens":18234,"output_tokens":412,"cache_read":15872}}}
{"type":"user","uuid":"7a1e6c52-0b9f-4e0d-b1c4-3f8d2a6e5c90","timestamp":"2026-03-04T09:15:31.019Z","message":{"role":\
"user","content":[{"type":"tool_result","tool_use_id":"call_0007","is_error":false,"content":"12 passed in 0.84s"}]}}
""",
    ),
    Sample(
        202,
        """\
{
  "name": "example-shop",
  "version": "2.14.0",
  "private": true,
  "scripts": {
    "build": "tsc -p tsconfig.build.json && vite build",
    "lint": "eslint . --max-warnings 0",
    "test": "vitest run --coverage"
  },
  "dependencies": {
    "date-fns": "^3.6.0",
    "react": "^18.3.1",
    "react-router-dom": "^6.26.2",
    "zod": "^3.23.8"
  },
  "devDependencies": {
    "@types/node": "^22.5.4",
    "typescript": "~5.6.2",
    "vite": "^5.4.3",
    "vitest": "^2.0.5"
  },
  "engines": { "node": ">=20.10" }
}
""",
    ),
    Sample(
        227,
        """\
[
  {"id": 1041, "name": "Ada Moreau", "email": "ada@example.org", "active": true, "balance": 1250.75, "tags": ["vip"]},
  {"id": 1042, "name": "Jonas Falk", "email": "jonas@example.org", "active": false, "balance": 0.0, "tags": []},
  {"id": 1043, "name": "Priya Nair", "email": "priya@example.org", "active": true, "balance": -32.5, "tags": ["new"]},
  {"id": 1044, "name": "Tom Okafor", "email": null, "active": true, "balance": 98.2, "tags": ["eu", "reseller"]},
  {"id": 1045, "name": "Lucia Conti", "email": "lucia@example.org", "active": true, "balance": 410.0, "tags": ["it"]}
]
""",
    ),
)

MARKDOWN = (
    Sample(
        217,
        """\
# Release checklist

1. Merge everything labelled `2.4` and close the milestone.
2. Run the long tests: `make check-all` (about 25 minutes).
3. Update `CHANGELOG.md`; every entry needs a **why**, not only a *what*.
4. Tag, push and wait for the build.

## Known problems

| Area    | Problem                                  | Until |
|---------|------------------------------------------|-------|
| import  | duplicate contacts when addresses differ in case | 2.4.1 |
| search  | no results for terms under three letters | 2.5   |
| export  | times are written without a zone         | –     |

> **Note:** do not announce the new search before the index has been rebuilt on all three servers.

```python
from shop.search import rebuild

rebuild(server="eu-1", batch=500)
```

See also [the runbook](docs/runbook.md#search) and [ticket 318](https://example.org/shop/tickets/318).
""",
    ),
    Sample(
        162,
        """\
## What changed and why

- `OrderList` fetched on every keystroke; it now waits 300 ms. **Before:** 41 requests for "lisbon", **after:** 2.
- Removed `legacy_format()`. Nobody called it since v1.9 (checked with `grep -rn legacy_format`).
- The retry in `client.py` slept *before* the first attempt. Fixed, with a test.

### Still open

- [ ] translations for the new error messages (`de`, `fr`)
- [ ] measure start-up on the old laptop
- [x] ask Maria about the rounding rules: half up, two digits

---

Tests: **214 passed**, 3 skipped (no network). Coverage went from 86 % to 88 %.
""",
    ),
    Sample(
        186,
        """\
**Session b6c7e0aa** (`/home/lena/shop`, branch `fix/duplicate-contacts`)

* 2026-03-04 09:12 — asked why contacts are imported twice; suspects untrimmed e-mail addresses
* 2026-03-04 09:15 — `pytest -q tests/test_orders.py` → 12 passed
* 2026-03-04 09:21 — edited `shop/importer.py`: addresses are stripped and lower-cased before comparing
* 2026-03-04 09:30 — **decision:** keep the first contact, append the phone numbers of the second one
* 2026-03-04 09:44 — open: what to do with contacts that have no address at all?

Next step: write a migration for the existing duplicates, see `docs/duplicates.md`.
""",
    ),
)

CHINESE = (
    Sample(
        125,
        """\
今天上午我们重新检查了数据库的备份流程。原来的脚本在磁盘空间不足时不会报错，只是悄悄地写出一个空文件，所以过去三\
个星期里其实\
没有任何可用的备份。我建议先修好这个问题，再考虑别的优化：备份结束后立即验证文件大小和校验和，如果不正确就退出并\
发送通知。\
另外，用户希望每天凌晨两点运行，而不是中午，因为中午的访问量最大。请不要修改付款相关的代码，财务部门还在讨论四舍\
五入的规则。
""",
    ),
    Sample(
        103,
        """\
我昨天把搜索页面改成了延迟三百毫秒再发送请求。改之前输入一个城市的名字会产生四十多个请求，改之后只有两个。测试全\
部通过了，\
不过还有两件事没有完成：第一，错误信息的翻译；第二，在旧电脑上测量启动时间。你能帮我看一下 README.md 里的安装说明吗？\
我觉得第三步写得不够清楚，新同事总是在这里遇到问题。谢谢！
""",
    ),
    Sample(
        86,
        """\
小李住在海边的一座小城，他每天早上六点起床，先去市场买菜，然后骑自行车去学校教书。他的妹妹去年春天结婚了，现在住\
在北京，\
两个人每个星期天都会打电话。七月份他打算和朋友一起去爬山，如果天气好的话，他们会在山上住一个晚上，看第二天的日出。
""",
    ),
)

JAPANESE = (
    Sample(
        158,
        """\
昨日の夜間処理が失敗した原因を調べました。ディスクの容量ではなく、二つのプロセスが同じ秒に起動して、どちらも自分\
がロックを\
持っていると思い込んでいたことが原因でした。二番目のプロセスは十秒待ってからあきらめ、それでも成功と報告していました。\
そのため、三週間のあいだ誰も気づきませんでした。まずはロックに所有者を記録し、後から来たほうは別の終了コードで終\
わるように\
直したいと思います。再試行の仕組みは、必要だと分かってから追加しましょう。
""",
    ),
    Sample(
        130,
        """\
検索ページを修正しました。これまでは一文字入力するたびにリクエストを送っていましたが、今は三百ミリ秒待ってから送\
信します。\
テストはすべて通っています。残っている作業は、エラーメッセージの翻訳と、古いノートパソコンでの起動時間の計測です。\
README.md のインストール手順も少し分かりにくいので、来週までに書き直しておきます。お支払い関連のコードは変更しな\
いでください。
""",
    ),
    Sample(
        108,
        """\
田中さんは海の近くの小さな町に住んでいて、週に三日ピアノを教えています。残りの日は、引退した漁師から買った古いヨ\
ットを修理して\
過ごします。日曜日にはたいてい両親に電話をかけます。七月には友だち二人と島まで旅行する予定ですが、それまでにエン\
ジンが直るか\
どうかはまだ分かりません。
""",
    ),
)

KOREAN = (
    Sample(
        105,
        """\
어젯밤 작업이 실패한 이유를 확인했습니다. 디스크 용량 문제가 아니라, 두 프로세스가 같은 시각에 시작되어 서로 \
잠금을 가지고 있다고 \
생각한 것이 원인이었습니다. 두 번째 프로세스는 십 초를 기다린 뒤 포기하면서도 성공했다고 보고했습니다. 그래서 \
삼 주 동안 아무도 \
알아차리지 못했습니다. 먼저 잠금에 소유자를 기록하고, 나중에 온 쪽은 다른 종료 코드로 끝나도록 고치겠습니다.
""",
    ),
    Sample(
        94,
        """\
검색 페이지를 수정했습니다. 이전에는 글자를 입력할 때마다 요청을 보냈지만, 지금은 삼백 밀리초를 기다린 다음 \
보냅니다. 테스트는 모두 \
통과했고, 오류 메시지 번역과 오래된 노트북에서 시작 시간을 재는 일이 남아 있습니다. 결제와 관련된 코드는 \
건드리지 말아 주세요. \
README.md 설치 안내의 세 번째 단계도 다시 써야 할 것 같습니다.
""",
    ),
    Sample(
        99,
        """\
민수는 바닷가의 작은 도시에 살면서 일주일에 사흘 동안 피아노를 가르칩니다. 나머지 시간에는 은퇴한 어부에게서 산 \
낡은 배를 고칩니다. \
일요일에는 보통 부모님께 전화를 드립니다. 칠월에는 친구 두 명과 함께 섬으로 여행을 갈 계획이지만, 그때까지 \
엔진을 고칠 수 있을지는 \
아직 모릅니다.
""",
    ),
)

HEX = (
    Sample(
        202,
        """\
9f2c4b7e01d83a6655c0e1f4a7b92d38c6415e0f  shop/importer.py
03be77a1c9d24f5086e1b3f29a4c7d60518fe2ab  shop/orders.py
e7410c5d92ab36f8d05e4b1c87a39f62103bd4ce  tests/test_orders.py
5a8d3f19c0e24b7681f5d92ea0374cb6ed18920f  README.md
c1f60b92d7e54a3880b6f2d419ea73c5250fd8b7  docs/runbook.md
48e0a7d3165fbc92f403d8b6e51a297c0d63fb84  pyproject.toml
""",
    ),
    Sample(
        225,
        """\
00000000: 7f45 4c46 0201 0100 0000 0000 0000 0000
00000010: 0300 3e00 0100 0000 a01b 0600 0000 0000
00000020: 4000 0000 0000 0000 d8f3 2d00 0000 0000
00000030: 0000 0000 4000 3800 0d00 4000 1f00 1e00
00000040: 0600 0000 0400 0000 4000 0000 0000 0000
00000050: c3a9 51f7 8be2 04d6 9a3f e17c 20b5 68fd
00000060: 1e94 a0c8 57d3 bb06 f2e9 4d31 8c7a 05f6
""",
    ),
    Sample(
        247,
        """\
0d3b8f7c-52a4-4a0e-9c1d-7be2b1f0a6d3
5f0f2f86-94a5-4c39-8f26-1d5a7e0c9b11
b6c7e0aa-1f3d-4d52-8a55-0e9d6f2c7b48
7a1e6c52-0b9f-4e0d-b1c4-3f8d2a6e5c90
e94d07b3-68f1-4c2a-a7d5-91c0f3b82e64
23f5a8c1-d07e-49b6-85e3-c4a91d7f6b02
--accent: #3b82f6; --danger: #dc2626; --muted: #6b7280; mask = 0xFFEE00A7; addr = 0x7ffd5c8e9b40
""",
    ),
)

EMOJI = (
    Sample(
        74,
        """\
🎉 Release 2.4 is out! 🚀🚀
✅ 214 tests passed, ⏭️ 3 skipped, ❌ 0 failed
🐛 fixed: contacts imported twice
⚡ search is faster now 🔍
📝 docs updated, 🌍 translations still open
🙏 thanks to everybody who helped 👏👏👏
""",
    ),
    Sample(
        109,
        "😀😂🤣😊😍🥰😎🤔😅🙄😴🤯🥳😢😭😡👍👎👏🙌🙏💪🔥✨🎉🎊🎁🚀💡🐛🔧🔨📝📦📁📄🔒🔑🧪🔍⭐💯🎯🟢🟡🔴🔵🌍🌞🌧🍕🍎\
☕🍺🚗🚲✈🏠🏢",
    ),
    Sample(
        113,
        """\
❤️ 🧡 💛 💚 💙 💜 🖤 👨‍👩‍👧‍👦 👩‍💻 🧑‍🚀 🏳️‍🌈 👍🏽 👋🏿 🤝🏻 🇩🇪 🇯🇵 🇰🇷 🇧🇷 🇺🇸 ☀️ ☁️ ❄️ ⚠️ ♻️ ✔️ ➡️ ⬆️ ℹ️ 1️⃣ \
2️⃣ 3️⃣ 🔟
""",
    ),
)

GERMAN = (
    Sample(
        107,
        """\
Bitte ändere an den Rechnungsseiten vorerst nichts. Maria klärt noch mit der Buchhaltung, wie gerundet werden soll, und
was wir heute anpassen, müssten wir am Freitag ohnehin wieder ändern. Kümmere dich stattdessen um den Import: Kundinnen
und Kunden fragen ständig, warum ihre Kontakte doppelt erscheinen. Ich vermute, dass die Adressen verglichen werden,
bevor die Leerzeichen entfernt sind. Schreib zuerst einen Test, der den Fehler zeigt, und behebe ihn erst danach.
""",
    ),
)

RUSSIAN = (
    Sample(
        104,
        """\
Пожалуйста, пока не меняй страницы со счетами. Мария ещё обсуждает с бухгалтерией правила округления, и всё, что мы
исправим сегодня, в пятницу придётся переделывать. Лучше займись импортом: клиенты постоянно спрашивают, почему их
контакты появляются дважды. Я думаю, что адреса сравниваются до удаления пробелов. Сначала напиши тест, который
показывает ошибку, и только потом исправляй её.
""",
    ),
)

ARABIC = (
    Sample(
        91,
        """\
من فضلك لا تغيّر صفحات الفواتير الآن، فما زالت مريم تناقش قواعد التقريب مع قسم المحاسبة. اعمل على استيراد جهات \
الاتصال بدلاً من
ذلك، لأن العملاء يسألون دائماً لماذا تظهر أسماؤهم مرتين. أظن أننا نقارن العناوين قبل حذف المسافات. اكتب \
اختباراً يوضح الخطأ أولاً،
ثم أصلحه بعد ذلك.
""",
    ),
)

BASE64 = (
    Sample(
        165,
        """\
q83vEjRWeJq83vASNFZ4mrze8BI0VniavN7wEjRWeJq83uUxZ0cKfY2bL9TqOh5sVdWm
Xr7PzN1kGQeA4yBtJcIiDu3MwRoHnSlvE6gTfCj8xp0K2VbZrFqYhWdLs5UaOmPeXcNt
iH1zGkJvQyBn3RwTuA7oSlDfEg9MxKjC4pVbI6rZqFhYdWsLm8UaOePcXtN0iGkJvQ2z
""",
    ),
)

LOG = (
    Sample(
        176,
        """\
2026-03-04T09:15:27.482Z INFO  [worker-3] shop.importer: 1842 contacts read, 37 duplicates, took 912 ms
2026-03-04T09:15:28.004Z WARN  [worker-3] shop.importer: no address for contact 118204, kept as it is
2026-03-04T09:15:31.019Z ERROR [worker-1] shop.orders: ValueError: invalid literal for int() with base 10: '12,50'
  File "/home/lena/shop/shop/orders.py", line 127, in parse_amount
    return int(text)
2026-03-04T09:15:31.020Z INFO  [main] exit 1 after 3.54 s
""",
    ),
)

# What the default counter promises: within 20 % on each of these.
PROMISED = {
    "English": ENGLISH,
    "code": CODE,
    "JSON": JSON,
    "Markdown": MARKDOWN,
    "Chinese": CHINESE,
    "Japanese": JAPANESE,
    "Korean": KOREAN,
    "hex": HEX,
    "emoji": EMOJI,
}
MORE = {"German": GERMAN, "Russian": RUSSIAN, "Arabic": ARABIC, "base64": BASE64, "log": LOG}
