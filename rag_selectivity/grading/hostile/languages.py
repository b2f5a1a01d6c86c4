"""Orders to a judge in languages other than English: to ignore its instructions, or to give a high grade."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_SENTENCE_END = re.compile(r"[.!?\n。！？।]+")
#: A longer sentence is read in parts, so that words far from each other are not taken for one order.
_LONGEST = 240


@dataclass(frozen=True, slots=True)
class Language:
    """How one language says it. `stems` are searched first, since most passages hold none of them."""

    stems: tuple[str, ...]
    ignore: re.Pattern[str]
    rules: re.Pattern[str]
    give: re.Pattern[str]
    text: re.Pattern[str]
    top: re.Pattern[str]

    def orders(self, sentence: str) -> bool:
        """Whether a sentence says to ignore the instructions, or to give this text a high grade."""
        if self.ignore.search(sentence) and self.rules.search(sentence):
            return True
        return all(pattern.search(sentence) for pattern in (self.text, self.top, self.give))


def _language(ignore: str, rules: str, give: str, text: str, top: str, stems: str) -> Language:
    return Language(tuple(stems.split()), *map(re.compile, (ignore, rules, give, text, top)))


LANGUAGES = (
    _language(
        r"\bignorier(?:e|en sie)\b|\bvergiss\b|\bvergessen sie\b|\bmissachte\b|\bbeachte\b[^.!?\n]{0,40}\bnicht\b|"
        r"\bübergeh(?:e|en sie)\b|\blass\b",
        r"\b(?:anweisung|vorgabe|regel|instruktion|kriterien|bewertungs|auftr[aä]g|befehl|richtlinie)",
        r"\b(?:gib|geben sie|bewerte|bewerten sie|benote|vergib|vergeben sie|setze|antworte|wähle|stufe)\b",
        r"\b(?:diese[mnsr]?|obige[nmr]?|vorliegende[nmr]?) (?:\w+ )?(?:text|passage|abschnitt|dokument|absatz"
        r"|artikel|seite)",
        r"\b(?:5|fünf|bestnote|höchst\w*|maxim\w*|beste\w*|volle\w*)\b",
        "ignorier vergiss vergessen missacht beacht überg bewerte benote gib vergib geben antworte",
    ),
    _language(
        r"\b(?:ignor(?:e|ez)|oubli(?:e|ez)|néglige[zr]?|ne (?:suis|suivez|tiens|tenez) (?:pas|plus|aucun\w*))\b",
        r"\b(?:les|ces|vos|tes|mes|des|aux|de|du|la|le|aucune) (?:\w+ )?(?:instruction|consigne|règle|critère"
        r"|directive|barème)",
        r"\b(?:donne[zr]?|attribue[zr]?|note[zr]?|évalue[zr]?|mets|mettez|accorde[zr]?|réponds|répondez|choisis\w*)\b",
        r"\b(?:ce|cet|cette|le|la) (?:texte|passage|document|article|page|extrait|paragraphe)",
        r"\b(?:5|cinq|maximal\w*|maximum|meilleure?|plus (?:haute|élevée))\b",
        "ignore oubli néglig suivez tenez donne attribu évalue mets mettez accorde",
    ),
    _language(
        r"\b(?:ignor[ae]n?|olvid[ae]n?|omit[ae]n?|no (?:sigas?|tengas? en cuenta|apliques?|hagas? caso))\b",
        r"\b(?:instruccion|reglas?|criterio|indicacion|directriz|directrices|órdenes|rúbrica|normas)",
        r"\b(?:da|dale|dé|asign[ae]|otorg[ae]|califi[cq]\w*|puntú[ae]|evalú[ae]|pon|ponle|responde|elige)\b",
        r"\b(?:este|esta|al|el|la) (?:texto|pasaje|documento|artículo|página|párrafo|fragmento)",
        r"\b(?:5|cinco|máxim[ao]|mejor|más alt[ao])\b",
        "ignor olvid omit sigas cuenta asign otorg califi puntú evalú",
    ),
    _language(
        r"\b(?:ignora(?:te)?|dimentica(?:te)?|trascura(?:te)?|non (?:seguire|considerare|tenere conto))\b",
        r"\b(?:istruzion|regol[ae]|criteri|indicazion|direttiv|rubrica|ordini)",
        r"\b(?:dai|date|dà|assegna(?:te)?|attribuisci|valuta(?:te)?|metti|rispondi|scegli)\b",
        r"\b(?:questo|questa|a questo|al|il) (?:testo|brano|documento|passaggio|passo|articolo|paragrafo|pagina)",
        r"\b(?:5|cinque|massim[ao]|migliore|più alt[ao])\b",
        "ignora dimentica trascura seguire assegna attribui valuta dai",
    ),
    _language(
        r"\b(?:ignor[ae]m?|esque(?:ça|ce|çam)|desconsider[ae]|não (?:siga|sigas|considere))\b",
        r"\b(?:instruç|regras?|critério|diretriz|indicaç|orden[ts]|rubrica)",
        r"\b(?:dê|dá|atribu[ai]|avali[ae]|classifi\w+|coloque|responda|escolha|pontue)\b",
        r"\b(?:est[ea]|a est[ea]|ao|à|o|a) (?:texto|passagem|documento|artigo|página|parágrafo|trecho)",
        r"\b(?:5|cinco|máxim[ao]|melhor|mais alta)\b",
        "ignor esque desconsider siga atribu avali pontue coloque",
    ),
    _language(
        r"\b(?:negeer|vergeet|ignoreer|volg niet|sla over)\b",
        r"\b(?:instructie|aanwijzing|regel|richtlijn|opdracht|criteria)",
        r"\b(?:geef|beoordeel|waardeer|ken|zet|antwoord|kies)\b",
        r"\b(?:deze|dit|bovenstaande) (?:\w+ )?(?:tekst|passage|document|alinea|artikel|pagina)",
        r"\b(?:5|vijf|hoogste|maximale?|beste|volle)\b",
        "negeer vergeet ignoreer geef beoordeel waardeer",
    ),
    _language(
        r"\b(?:zignoruj(?:cie)?|ignoruj|zapomnij|pomiń|nie (?:stosuj|przestrzegaj))\b",
        r"\b(?:instrukcj|polece|wytyczn|regu|zasad|kryteri|wskazów)",
        r"\b(?:oceń|daj|przyznaj|wystaw|odpowiedz|wybierz)\b",
        r"\b(?:ten|tego|temu|tej|ta|tę|powyższ\w+) (?:\w+ )?(?:tekst|fragment|dokument|artykuł|akapit|stron)",
        r"\b(?:5|pięć|piątk\w+|najwyższ\w+|maksymaln\w+|najlepsz\w+)",
        "ignoruj zapomnij pomiń oceń przyznaj wystaw daj",
    ),
    _language(
        r"\b(?:игнорируй|забудь|пренебреги|не (?:следуй|обращай|учитывай)|отбрось|проигнорируй)(?:те)?",
        r"(?:инструкци|указани|правил|критери|команд|предписани|рубрик)",
        r"\b(?:оцени|поставь|дай|присвой|выбери|ответь|выставь)(?:те)?\b",
        r"(?:эт\w+|данн\w+|вышеуказанн\w+) (?:\w+ )?(?:текст|отрыв|документ|фрагмент|абзац|стать|пассаж|страниц)",
        r"\b(?:5|пять|пят[её]рк\w*|максим\w+|высш\w+|наивысш\w+|лучш\w+)",
        "игнорируй забудь пренебреги следуй оцени поставь присвой дай выставь",
    ),
    _language(
        r"忽略|无视|無視|忘记|忘掉|不要遵守|不要理会|不用管|抛开|忽視",
        r"指令|指示|规则|規則|要求|标准|標準|提示|说明|命令",
        r"[给給]|打|评为|評為|评[分价]|回答|输出|选择|标记为",
        r"[这這本此上该][个個段篇条份]?(?:文字|段落|文本|文章|文档|内容|段|篇)",
        r"5 ?分|五分|满分|滿分|最高|最佳|5级",
        "忽略 无视 無視 忘 不要 给 給 打 评 評",
    ),
    _language(
        r"無視|忘れ|従わない|守らな|考慮しない",
        r"指示|命令|ルール|規則|基準|ガイドライン|プロンプト",
        r"つけ[てろる]|付け[てろる]|与え[てろ]|評価し[てろ]|採点し[てろ]|出力し[てろ]|答え[てろ]|してください",
        r"(?:この|上記の|以上の|本)(?:文章|文書|テキスト|段落|記事|パッセージ|ページ|文)",
        r"[5５]点?|五点|最高|満点|最大",
        "無視 忘れ 従わ つけ 付け 与え 評価 採点",
    ),
    _language(
        r"تجاهل|تجاهلوا|انسَ|(?<!\w)انس(?!\w)|لا تتبع|لا تلتزم|أهمل",
        r"تعليمات|التعليمات|قواعد|القواعد|معايير|المعايير|أوامر|الأوامر|توجيهات|إرشادات",
        r"امنح|أعط|اعط|ضع|قيّم|قيم|اختر|أجب",
        r"(?:هذا|هذه|لهذا|لهذه) (?:ال)?(?:نص|مقطع|وثيقة|مستند|فقرة|مقال|صفحة)",
        r"5|٥|خمسة|أعلى|القصوى|الكاملة|كاملة|ممتاز",
        "تجاهل انس تتبع تلتزم أهمل امنح أعط اعط ضع قيم قيّم",
    ),
    _language(
        r"무시하|잊어|따르지",
        r"지시|지침|명령|규칙|기준|프롬프트",
        r"주세요|줘|매겨|부여하|평가하",
        r"(?:이|위) ?(?:글|문서|문단|구절|텍스트|기사)",
        r"5 ?점|오점|만점|최고",
        "무시 잊어 따르지 점수 매겨 부여 평가 주세요",
    ),
    _language(
        r"अनदेखा|अनदेखी|भूल जा|नज़रअंदाज|नजरअंदाज|उपेक्षा|पालन न|मत मान",
        r"निर्देश|नियम|आदेश|मानदंड|अनुदेश",
        r"(?:दो|दें|दीजिए|करें|करो|दे)(?!\w)",
        r"(?:इस|इसे|यह|उपरोक्त) (?:पाठ|अनुच्छेद|दस्तावेज़|दस्तावेज|लेख|अंश|गद्यांश|पृष्ठ)",
        r"5|५|पाँच|पांच|सबसे अधिक|सर्वोच्च|अधिकतम|पूरे",
        "अनदे भूल नज़रअ नजरअ उपेक्षा अंक निर्देश",
    ),
)


_LATIN = 7
_OTHER_SCRIPT = re.compile("[\u0400-\u052f\u0600-\u06ff\u0900-\u097f\u3040-\u30ff\uac00-\ud7a3\u4e00-\u9fff]")


def order_in_another_language(lowered: str, latin: bool) -> bool:
    """Whether a text in lower case orders the judge to ignore its instructions, or to give a high grade.

    Parameters
    ----------
    latin : bool
        Whether languages with Latin letters are searched too.
    """
    others = not lowered.isascii() and _OTHER_SCRIPT.search(lowered) is not None
    languages = [
        language
        for language in LANGUAGES[0 if latin else _LATIN : None if others else _LATIN]
        if any(stem in lowered for stem in language.stems)
    ]
    return bool(languages) and any(
        language.orders(sentence) for sentence in _sentences(lowered) for language in languages
    )


def _sentences(text: str) -> Iterator[str]:
    for sentence in _SENTENCE_END.split(text):
        for start in range(0, len(sentence), _LONGEST):
            yield sentence[start : start + _LONGEST]
