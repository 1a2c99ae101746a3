"""Cues in nine languages besides English: for rules, preferences, decisions, corrections, requests and short replies.

Only the most valuable kinds of sentences have cues. Cues match whole words, except in Chinese, Japanese and Korean,
where words are not separated or have endings attached.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from omcli.base import lazily
from omcli.base.record import record


@record
class Language:
    """Cues of one language, as lower-case alternatives of a regular expression."""

    name: str
    rule: tuple[str, ...]
    """Cues of lasting rules, such as always, never and from now on."""
    narrative: str = r"(?!)"
    """Start of a sentence that describes what always happens, and so is not a rule."""
    constraint: tuple[str, ...]
    """Beginnings of an order not to do something, with or without "please"."""
    preference: tuple[str, ...]
    decision: tuple[str, ...]
    correction: tuple[str, ...]
    """Beginnings of a sentence that corrects something."""
    request: tuple[str, ...]
    yes: tuple[str, ...]
    """Whole replies that agree."""
    no: tuple[str, ...]
    """Whole replies that decline."""
    courtesy: tuple[str, ...]
    """Whole sentences that are only polite."""
    spaced: bool = True
    """True if cues match only whole words."""


LANGUAGES = (
    Language(
        name="German",
        rule=(r"(?<!noch )(?<!t )nie(?! (?:ge\w+t|war|hat)\b)", "regel:",
                  r"ab (?:jetzt|sofort|heute)", "von nun an", "in zukunft", "künftig", "zukünftig", "grundsätzlich",
                  r"(?<!schon )(?<!noch )immer(?! (?:noch|wieder|mehr))", "niemals", "nie (?:wieder|mehr)"),
        narrative=r"(?:es|das|er|ich|(?:der|die|dieser?|mein\w*|unser\w*) \w+) "
               r"(?!muss|müssen|soll|sollte|sollen|darf|dürfen|möchte|will)\w+",
        constraint=(r"keine?n? \w+", r"nicht \w+en"),
        preference=(r"ich bevorzuge", r"(?:ich|wir) \w+ (?:es )?lieber", r"mir (?:ist|wäre) (?:es )?lieber",
                    r"ich mag (?:es|keine?n?|lieber)", "am liebsten", r"mein\w* lieblings\w*"),
        decision=(r"entscheidung ?:", r"(?:verwende|nutze|benutze|nimm) \S+,? (?:statt|anstatt|anstelle|nicht)",
                  r"(?:wir|ich) (?:nehmen?|verwenden?|benutzen?|nutzen?|bleiben?|behalten?|lassen?)",
                  r"(?:wir|ich) haben? (?:uns|mich) (?:für|gegen|entschieden)", "entschieden", "lass uns", "lasst uns"),
        correction=(r"nein[,.!] ?\w", r"das (?:ist|war|stimmt) (?:falsch|nicht|so nicht)", "falsch", "stopp",
                    r"du hast (?:\w+ )?(?:vergessen|übersehen)", "so nicht"),
        request=(r"(?:kannst|könntest|würdest) du", r"(?:können|könnten|würden) sie", "bitte"),
        yes=("ja", "jawohl", "ja,? bitte", "ja,? gerne", "gerne", "genau", "mach das", "passt", "einverstanden",
             "in ordnung"),
        no=("nein", "nein,? danke", "nee", "lieber nicht", "lass es", "nicht jetzt"),
        courtesy=("danke", "vielen dank", "danke schön", "hallo", "guten (?:morgen|tag|abend)", "super", "prima",
                  "toll"),
    ),
    Language(
        name="French",
        rule=(r"règle ?:",
                  r"toujours(?! pas)", "jamais", "désormais", r"à partir de maintenant", "dorénavant",
                  r"à l['’]avenir", "à chaque fois que"),
        narrative=r"(?:ça|cela|il|elle|ils|elles|je|on|nous|(?:le|la|les|ce|cette|mon|ma|notre) \w+) "
               r"(?!dois|doit|doivent|faut|veux|voudrais)\w+|(?:c|j)['’]\w+",
        constraint=(r"ne \w+ (?:pas|plus|rien)", "pas de"),
        preference=(r"je préfère", r"je préférerais", r"j['’]aime(?:rais)?(?: mieux| bien)?", r"je n['’]aime pas",
                    r"j['’]aimerais mieux", "je déteste"),
        decision=(r"décision ?:", r"(?:utilise[sz]?|prends|prenez) \S+,? (?:au lieu|à la place|plutôt|pas)",
                  r"on (?:va|prend|garde|utilise|part sur)", r"nous (?:allons|prenons|gardons|utilisons)",
                  r"(?:nous avons|on a|j['’]ai) (?:décidé|choisi|opté)", "utilisons", "gardons"),
        correction=(r"non[,.!] ?\w", r"c['’]est (?:faux|incorrect)", r"ce n['’]est pas", r"tu as oublié",
                    r"vous avez oublié",
                    "pas comme ça"),
        request=(r"(?:peux|pourrais)[- ]tu", r"(?:pouvez|pourriez)[- ]vous", r"s['’]il (?:te|vous) plaît"),
        yes=("oui", "oui,? merci", "d['’]accord", "vas-y", "allez-y", "parfait", "exactement", "bien sûr", "ça marche"),
        no=("non", "non,? merci", "pas maintenant", "laisse tomber"),
        courtesy=("merci", "merci beaucoup", "bonjour", "bonsoir", "salut", "super", "génial"),
    ),
    Language(
        name="Spanish",
        rule=(r"regla ?:",
                  r"(?:siempre|nunca)(?! (?:me|se|nos|he|ha|hemos|falla\w*|\w+(?:ó|aba|aron|ieron))(?!\w))",
                  r"a partir de ahora", "de ahora en adelante", r"en (?:el|lo) (?:futuro|sucesivo)",
                  "cada vez que", "jamás"),
        narrative=r"(?:yo|me|eso|esto|él|ella|(?:el|la|los|las|este|esta|mi|nuestr[oa]) \w+) "
               r"(?!debe|deben|debería|tiene|tienen|hay)\w+",
        constraint=(r"no (?:hagas|toques|pongas|cambies|borres|añadas|agregues|modifiques|subas|quites|uses(?! of))",),
        preference=(r"prefiero", r"preferiría", r"me gusta(?:ría|n)?", r"no me gusta(?:n)?", r"me encanta(?:n)?",
                    "odio"),
        decision=(r"decisión ?:", r"(?:usa|utiliza) \S+,? (?:en lugar|en vez|no)",
                  r"(?:vamos a|usemos|usaremos|quedémonos|dejemos)", r"(?:hemos|he) decidido", "decidimos", "decidí",
                  r"nos quedamos con", "optamos por"),
        correction=(r"no[,.!] ?\w", r"(?:eso|esto) no (?:es|está|era)", r"eso (?:es|está) mal",
                    r"te (?:olvidaste|has olvidado)",
                    "así no"),
        request=(r"¿?(?:puedes|podrías|puede|podría)", r"por favor"),
        yes=("sí", "si", "sí,? por favor", "claro", "vale", "de acuerdo", "adelante", "perfecto", "hazlo", "exacto"),
        no=("no", "no,? gracias", "ahora no", "déjalo"),
        courtesy=("gracias", "muchas gracias", "hola", "buenos días", "buenas (?:tardes|noches)", "genial"),
    ),
    Language(
        name="Portuguese",
        rule=(r"regra ?:",
                  "sempre", r"nunca(?! \w+(?:ou|eu|iu|ava|ó)(?!\w))",
                  r"a partir de agora", r"de agora em diante", r"no futuro", r"toda vez que",
                  "jamais"),
        narrative=r"(?!a partir )(?:eu|isso|isto|ele|ela|(?:o|a|os|as|este|esta|meu|minha|nosso|nossa) \w+) "
               r"(?!deve|devem|deveria|tem|precisa)\w+",
        constraint=(r"não (?:use|faça|mexa|toque|altere|mude|apague|adicione|crie|coloque|remova)",),
        preference=(r"(?:eu )?prefiro", r"preferia", r"eu (?:gosto|gostaria|adoro|odeio)", r"não gosto"),
        decision=(r"decisão ?:", r"(?:use|usa|utilize) \S+,? (?:em vez|em lugar|ao invés|não)",
                  r"vamos (?:usar|ficar|manter|com)", r"(?:decidimos|decidi)", r"optamos por", r"ficamos com"),
        correction=(r"não[,.!] ?\w", r"isso (?:não (?:é|está)|está errado)", r"você esqueceu", r"assim não"),
        request=(r"(?:você )?(?:pode|poderia)", r"por favor"),
        yes=("sim", "sim,? por favor", "claro", "pode", "isso", "combinado", "perfeito", "tá bom", "pode fazer"),
        no=("não", "não,? obrigad[oa]", "agora não", "deixa"),
        courtesy=("obrigad[oa]", "muito obrigad[oa]", "olá", "oi", "bom dia", "boa (?:tarde|noite)"),
    ),
    Language(
        name="Italian",
        rule=(r"regola ?:",
                  "sempre", r"non \w+ mai", r"d['’]ora in (?:poi|avanti)", r"in futuro", r"ogni volta che"),
        narrative=r"(?:io|ho|mi|questo|quello|lui|lei|(?:il|lo|la|i|gli|le|questa|mio|mia) \w+) "
               r"(?!deve|devono|dovrebbe|va|bisogna)\w+",
        constraint=(r"non (?!\w+ mai)\w+[aei]re",),
        preference=(r"preferisco", r"preferirei", r"mi piac(?:e|ciono|erebbe)", r"non mi piac(?:e|ciono)", "odio"),
        decision=(r"decisione ?:", r"(?:usa|utilizza) \S+,? (?:invece|al posto|non)",
                  r"(?:usiamo|useremo|teniamo|andiamo con)", r"(?:abbiamo|ho) (?:deciso|scelto)", r"optiamo per"),
        correction=(r"no[,.!] ?\w", r"non è (?:giusto|corretto|quello)", r"(?:è|questo è) sbagliato",
                    r"hai dimenticato",
                    r"così no"),
        request=(r"(?:puoi|potresti|può|potrebbe)", r"per favore"),
        yes=("sì", "si", "sì,? grazie", "certo", "va bene", "d['’]accordo", "perfetto", "esatto", "procedi"),
        no=("no", "no,? grazie", "non ora", "lascia stare"),
        courtesy=("grazie", "grazie mille", "ciao", "buongiorno", "buonasera"),
    ),
    Language(
        name="Russian",
        rule=(r"правило ?:",
                  r"(?:всегда|никогда)(?! (?:не )?\w+(?:[её]т|ит|[юуяа]т|л|ла|ло|ли)(?!\w))",
                  "впредь", "отныне", "с этого момента", "в будущем", "каждый раз"),
        constraint=(r"не \w+(?:й|йте|ь|ьте)",),
        preference=("предпочитаю", r"мне (?:больше )?нравит?ся", r"(?:я )?(?:не )?люблю", "лучше бы"),
        decision=(r"решение ?:", r"используй(?:те)? \S+,? (?:вместо|а не)",
                  "решил[аи]?", r"давай(?:те)? (?:использ\w+|остав\w+|возьм\w+|сдела\w+)", r"будем использовать",
                  "остановились на", "выбрали"),
        correction=(r"нет[,.!] ?\w", r"это (?:неправильно|неверно|не то|не так)", r"(?:ты|вы) забыл[аи]?", "не так"),
        request=(r"(?:можешь|можете|мог бы|могли бы)", "пожалуйста"),
        yes=("да", "да,? пожалуйста", "ага", "хорошо", "давай", "конечно", "верно", "согласен", "согласна", "именно"),
        no=("нет", "нет,? спасибо", "не надо", "не сейчас"),
        courtesy=("спасибо", "большое спасибо", "привет", "здравствуйте", "добрый (?:день|вечер)", "отлично"),
    ),
    Language(
        name="Chinese",
        spaced=False,
        rule=("规则[:：]", "規則[:：]",
                  "(?:以后|以後)(?:都|请|請|不|要|别|別|每|一律)", r"(?:^|[，。,！])以[后後](?=.{0,40}[请請])", "今后",
                  "从现在起", "从现在开始", "总是(?!失败|报错|出错|崩溃|很|在)", "始终",
                  "一律", "永远", "每次", "绝不", "不要再", "從現在起",
                  "今後", "總是(?!失敗|出錯|很|在)", "始終", "永遠"),
        constraint=("(?:不要|别|別|请勿|請勿|禁止|切勿)(?!再)",),
        preference=("我更?喜欢", "我不喜欢", "我偏好", "我倾向", "我宁愿", "我討厭", "我讨厌", "我更?喜歡", "我不喜歡",
                    "我寧願"),
        decision=("用.{1,20}(?:代替|而不是)",
                  "我们(?:用|使用|采用|改用|选择|决定)", "决定(?:用|使用|采用|改用)?", "就用", "那就用",
                  "我們(?:用|採用|決定)", "決定"),
        correction=("不对", "不是", "错了", "你(?:忘|漏|搞错)", "不要这样", "不對", "錯了"),
        request=("请", "請", "帮我", "幫我", "能不能", "可以帮", "麻烦"),
        yes=("好", "好的", "可以", "行", "是", "是的", "对", "對", "没问题", "就这样", "同意", "嗯"),
        no=("不", "不用", "不用了", "不要", "不行", "算了", "不是"),
        courtesy=("谢谢", "謝謝", "多谢", "你好", "您好", "太好了", "辛苦了"),
    ),
    Language(
        name="Japanese",
        spaced=False,
        rule=("ルール[:：]",
                  "今後", "これから(?:は|も)",
                  "(?:常に|必ず|いつも|毎回)(?=.{0,60}(?:さい|下さい|お願い|こと|する|よう))",
                  "絶対に", "二度と", "以後"),
        constraint=(".{1,40}(?:ないで(?:ください|下さい)?|禁止)[。！!]?$",),
        preference=("のほうが(?:好き|いい|良い)", "の方が(?:好き|いい|良い)", "が好き", "が嫌い", "好みです",
                    "を好みます"),
        decision=("決定[:：]", "(?:ではなく|の代わりに).{1,20}(?:使|用い)",
                  "にしましょう", "にします", "に決め", "を使いましょう", "を使うことに", "を採用"),
        correction=("いや[、,]", "違(?:う|い)", "ちがう", "間違", "そうじゃな", "いいえ[、,]"),
        request=("ください", "下さい", "お願い", "てもらえ", "てくれ"),
        yes=("はい", "うん", "ええ", "いいよ", "いいです", "お願いします", "了解", "そうです", "はい、お願いします",
             "オーケー"),
        no=("いいえ", "いや", "結構です", "やめて", "不要です", "だめ"),
        courtesy=("ありがとう(?:ございます)?", "こんにちは", "おはよう(?:ございます)?", "すごい", "お疲れ様です"),
    ),
    Language(
        name="Korean",
        spaced=False,
        rule=("규칙[:：]",
                  "(?:항상|매번|언제나)(?=.{0,60}(?:세요|십시오|해라|하라|해 ?줘|하기|할 것))", "앞으로", "절대",
                  "이제부터", "지금부터"),
        constraint=(".{1,40}지 ?(?:마세요|마라|마십시오|말아 ?(?:주세요|줘)|마)[.!]?$",),
        preference=("선호(?:합니다|해요|한다)", "(?:을|를|이|가|게) ?더 좋(?:아|습)", "좋아(?:해요|합니다|한다)",
                    "싫어"),
        decision=("결정[:：]", "대신.{1,20}(?:써|쓰|사용)",
                  "(?:로|으로) (?:하자|합시다|결정|가자|정했)", "(?:을|를) (?:쓰자|씁시다|사용하기로)", "결정했"),
        correction=("아니[,요 ]", "틀렸", "그게 아니", "잘못"),
        request=("해 ?주세요", "주세요", "부탁", "해 ?줘", "해줄래"),
        yes=("네", "예", "응", "좋아요?", "좋습니다", "그래요?", "맞아요?", "알겠습니다", "진행해 ?주세요"),
        no=("아니", "아니요", "아니오", "괜찮아요", "됐어요", "하지 ?마세요"),
        courtesy=("감사합니다", "고마워요?", "고맙습니다", "안녕하세요", "안녕"),
    ),
)  # fmt: skip


def _any_of(parts: Iterable[tuple[bool, tuple[str, ...]]], *, at_start: bool = False) -> re.Pattern[str]:
    """Return a pattern for the alternatives. Those paired with True match only whole words."""
    spaced: list[str] = []
    joined: list[str] = []
    for is_spaced, alternatives in parts:
        (spaced if is_spaced else joined).extend(alternatives)
    either = rf"(?<!\w)(?:{'|'.join(spaced)})(?!\w)|(?:{'|'.join(joined)})"
    return lazily(rf"^(?:{either})" if at_start else either)


def _joined(parts: Iterable[tuple[str, ...]]) -> str:
    return "|".join(alternative for alternatives in parts for alternative in alternatives)


RULE = _any_of((one.spaced, one.rule) for one in LANGUAGES)
NARRATIVE = lazily("|".join(rf"(?:{one.narrative})" for one in LANGUAGES))
_PLEASE = r"bitte|por favor|per favore|s['’]il (?:te|vous) plaît|пожалуйста|请|請"
CONSTRAINT = lazily(
    "^(?:(?:" + _PLEASE + r")[ ,]*)?(?:"
    + "|".join(rf"{cue}(?!\w)" if one.spaced else cue for one in LANGUAGES for cue in one.constraint) + ")"
)  # fmt: skip
PREFERENCE = _any_of((one.spaced, one.preference) for one in LANGUAGES)
DECISION = _any_of((one.spaced, one.decision) for one in LANGUAGES)
# A "no" followed by more words ("nein, nicht so") is a correction. Its cue ends with the first letter of the next word.
CORRECTION = lazily(
    "^(?:" + "|".join(cue if cue.endswith(r"\w") or not one.spaced else rf"{cue}(?!\w)"
                      for one in LANGUAGES for cue in one.correction) + ")"
)  # fmt: skip
REQUEST = _any_of((one.spaced, one.request) for one in LANGUAGES)
YES = _joined(one.yes for one in LANGUAGES)
NO = _joined(one.no for one in LANGUAGES)
COURTESY = _joined(one.courtesy for one in LANGUAGES)
