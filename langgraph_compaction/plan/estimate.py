"""An estimate of a text's tokens where the vocabulary is not at hand.

The text is cut as o200k_base cuts it before merging (tiktoken's pattern, written for `re`), and
each piece gets a price in hundredths of a token. The prices were fitted once, by least squares, to
o200k_base's own counts of prose, code, data and logs; `tests/benchmarks/counting_error.py` prints
the error by kind of content. All arithmetic is on integers, and nothing but the text decides: the
same text costs the same everywhere.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache
from itertools import pairwise, product
from operator import ne
from string import ascii_lowercase, ascii_uppercase, digits

SLICE_CHARACTERS = 1 << 18
"""Long texts are cut into slices of this many characters, so that memory stays bounded."""

REMEMBERED_PIECES = 1 << 15
"""Prices of at most this many short pieces are remembered, about 4 MB."""

# Letters beyond ASCII by the ranges that hold them, marks included; capitals apart, since a word
# ends where a capital follows a small letter. Scripts without case count as small letters.
_CAPITAL = "A-Z\u00c0-\u00d6\u00d8-\u00de\u0386-\u03ab\u0400-\u042f"
_SMALL = (
    "a-z\u00aa\u00b5\u00ba\u00df-\u00f6\u00f8-\u02c1\u0300-\u0385\u03ac-\u03ff\u0430-\u0588"
    "\u0591-\u05bd\u05bf-\u05f2\u0610-\u061a\u061c\u0620-\u065f\u066e-\u06d3\u06d5-\u06ef"
    "\u06fa-\u0963\u0971-\u0e3e\u0e40-\u0e4e\u0e5c-\u1fff\u2c00-\u2dff\u3005-\u3007"
    "\u302a-\u302f\u3031-\u3035\u303b\u303c\u3041-\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u318f"
    "\u31a0-\u31ff\u3400-\ud7ff\uf900-\ufb4f\ufb50-\ufdff\ufe00-\ufe0f\ufe20-\ufe2f"
    "\ufe70-\ufeff\uff21-\uff3a\uff41-\uff5a\uff66-\uffdc\U00020000-\U0003ffff"
)
_PIECE = re.compile(
    rf"[^\r\n\d{_CAPITAL}{_SMALL}]?(?:[{_CAPITAL}]*[{_SMALL}]++|[{_CAPITAL}]++)"
    r"|\d{1,3}"
    rf"| ?[^\s\d{_CAPITAL}{_SMALL}]++[\r\n/]*+"
    r"|\s*[\r\n]+|\s+(?!\S)|\s"
)
# What base64, hex and digits look like in bulk; words, paths and names are rarely that long.
_DATA = re.compile(r"[A-Za-z0-9+/]{64,}+")
_DATA_VARIETY = 10
_DECIMAL, _CAPITALS, _SMALLS = set(digits), set(ascii_uppercase), set(ascii_lowercase)
_LOWER_HEX, _UPPER_HEX = _DECIMAL | set("abcdef"), _DECIMAL | set("ABCDEF")

# How likely a token ends between two letters: row = first letter, column = second, a to z; digit
# n of 0-9A-Za-z stands for 2.5 n - 33 hundredths. Common pairs such as "th" are below zero.
_PAIRS = """
WNOEaV7bQdU2E4mLf1F1MKWN9a RZZcGfbYUSaEZfGdjUWY9fhdRg QcTa7dbDNi6IadIdjAT5OfgZRg
VbfT9dZhPUUYfdMhfUOYXfgbJb agSKUVVnkmhJSAgZUGJKmYa7OX QfcbKOagIjeRbbNmiTcTPjhYLg
ZhjiHgYaSkkUfVTkuMUXYeendZ PagaAmdiPZjaddNfbWa2TeccSZ YTJLAFBjleVAG3IKfJH4nRnNfL
Pggf9jhefedbfbYkmlRiZlhjcp TgnZMgTfXjegdSkqqdSbVdXmWn JajSAWgiJmjQkiJerfRRQdjm3p
MLfp6jbhShgRLfQTelYbYlkbQl YjRMGaJgYcWbbTSdsmMLVTnibb YNSLcKKkQZNGH3JPn3VIGRCTWq
OaaR8beNQgX8IiDJhEKBRafdNm hhekitchkrrSiijjXcdcDmlhds LmYR8dUkKqNfTVGhjWSRWagfKi
WgRd8bdLJlRcdWPKTOJETaXjFf PlddEigEMkieUlQawONPUiYa6j ZJPRCXOeRfY1EDkMl6G9lceYfb
Nieh7kVhDhgeZiLelbhlhfdeZa IkjVCefTMifbeRNjpWWfmfUWUo djdlUmrkcopgXgjepjnTpgtaYk
mijqdrjqmuoieScgvcTRloZZgl UkncMkedbjgldbVprihfbhXUhZ
""".split()
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PAIR_PRICE = {
    pair: (5 * _DIGITS.index(digit) - 66) // 2
    for pair, digit in zip(product(ascii_lowercase, repeat=2), "".join(_PAIRS), strict=True)
}
# The rest of a word's price, in hundredths of a token, and that of a run of symbols.
_WORD = 27
_WORD_START = 24  # without the space that most tokens begin with
_WORD_AFTER_SYMBOL = 54
_WORD_CAPITAL = 9
_CONTRACTION = 10
_CONTRACTIONS = frozenset("'s 't 'm 'd 'll 're 've".split())
_SYMBOLS = 55
_SYMBOL_CHANGE = 50  # for each symbol that differs from the one before

# Chinese, Japanese and Korean write many characters in one piece. Pairs that o200k_base keeps in
# one token, the most frequent of each language:
_CJK_PAIRS = (
    "使用中心体育文件一个如果没有可以設定服务提交版本指定数据工作不是我们不能不错中的需要系统名稱"
    "配置无法所有模式用户这个还是可能什么信息表示就是比较沒有自己但是感觉字符存在格式包含重新问题"
    "密码设置目录时间第一进行非常名称引用列表显示是否大小参数因为或者不要位置提供目前建立更新操作"
    "任何資料一次喜欢其他修改已经的是创建正在输出中国一般知道价格时候您的支持孩子环境还有类型软件"
    "这样路径执行很多只有必须他们全部取得不过错误程序管理希望默认历史功能有效很好觉得经济好的现在"
    "应该内容退出字段文字删除国家发展城市发现符合安全新的方式继续新闻所以具体活动网站第二状态真的"
    "设计資訊开始输入方便作为要求官方另外变量以及最佳通过对于标准关系一些找到大的不会只能最大之前"
    "怎么说明选择不同电话一起设施到了同时安装社会运行朋友部分一下完全不知作者企业不好內容起来虽然"
    "情况地方最后我的这些东西看到一样人民函数速度用于描述当前生活接受这是处理注意的新技术返回不可"
    "结果不到時間帮助这种失败方法搜索开放检查直接表达为了加入世界基本那么记者出现宣布个人公司工具"
    "也是更多人员晚上如何建议账户举办之后添加水平对象特别小时市场感谢质量方面一本一点大家训练代表"
    "动态打印推荐实力由于收到故事里面一定例如样的控制重要北京得到互动政府"
    "ますするませせんファイルされしてしまージしたショョンできですードりまない指定使用場合スト設定"
    "いまありこのインまし表示ールていではこと文字ディからさいントットックートくだださクトにはいる"
    "ラーータフォってースンドれたようまたてくあるためルトでしさんングランそのイトメンリーームコメ"
    "ップったターログでもイズしかそれとういうューンクりがピーまでこれそうがとただ"
    "니다습니파일합니하여한다으로에서하는사용하지하고에는입니거나있는교육하며지원대한프로자가스트"
    "내용회의이트이터정보된다가능사항하기학교원의하면부터십시시오이를하려에게리를지만그램서는되는"
    "경제정부위원상의스템자는있다했다이다있습적인하게들이경우사람적으었다위해까지세요이라우리면서"
    "리고통해생각아니때문것이들은이지하나이용필요들의함께제공시작는데시간아이다른나다위한모든같은"
    "한국으며만들따라해서다는가장기를이상확인"
)
_MERGED = frozenset(zip(_CJK_PAIRS[::2], _CJK_PAIRS[1::2], strict=True))
_MERGED_REBATE = 76

# Characters beyond ASCII by where their range begins, in hundredths of a token each.
_RANGES = (
    ("\x00", 0),  # spaces
    ("\x21", 40),  # ASCII symbols before a word
    ("\x41", 22),  # ASCII letters in a word of another alphabet
    ("\x80", 100),  # punctuation
    ("\xc0", 20),  # Latin-1
    ("\u0100", 75),  # Latin Extended
    ("\u0300", 60),  # combining marks
    ("\u0370", 39),  # Greek
    ("\u0400", 26),  # Cyrillic
    ("\u0530", 40),  # Armenian
    ("\u0590", 45),  # Hebrew
    ("\u0600", 35),  # Arabic
    ("\u0700", 190),  # Syriac, Thaana
    ("\u0800", 290),  # rare scripts
    ("\u0900", 35),  # Devanagari
    ("\u0980", 40),  # Bengali
    ("\u0a00", 70),  # Gurmukhi
    ("\u0a80", 50),  # Gujarati
    ("\u0b00", 110),  # Oriya
    ("\u0b80", 38),  # Tamil
    ("\u0c00", 50),  # Telugu, Kannada, Malayalam
    ("\u0d80", 65),  # Sinhala
    ("\u0e00", 41),  # Thai
    ("\u0e80", 170),  # Lao, Tibetan
    ("\u1000", 58),  # Burmese
    ("\u10a0", 40),  # Georgian
    ("\u1100", 290),  # Hangul parts
    ("\u1200", 200),  # Ethiopic
    ("\u1380", 290),  # rare scripts
    ("\u1780", 64),  # Khmer
    ("\u1800", 290),  # rare scripts
    ("\u1e00", 40),  # Vietnamese
    ("\u1f00", 100),  # Greek with accents
    ("\u2000", 100),  # punctuation
    ("\u2030", 180),  # symbols
    ("\u2500", 60),  # boxes
    ("\u2580", 180),  # shapes, pictographs
    ("\u2c00", 290),  # rare scripts
    ("\u3000", 100),  # CJK punctuation
    ("\u3040", 81),  # kana
    ("\u3100", 190),  # other CJK
    ("\u3400", 230),  # rare Chinese characters
    ("\ua000", 290),  # rare scripts
    ("\uac00", 82),  # Hangul
    ("\ud7b0", 250),  # Hangul parts
    ("\ud800", 100),  # lone surrogates
    ("\ue000", 280),  # private use, compatibility forms
    ("\ufe00", 50),  # variation selectors
    ("\ufe10", 100),  # full-width and half-width forms
    ("\U00010000", 400),  # rare scripts
    ("\U0001d400", 250),  # mathematical letters
    ("\U0001f000", 200),  # emoji
    ("\U0001f680", 230),  # emoji
    ("\U0001fa00", 300),  # emoji
    ("\U00020000", 370),  # rarest Chinese characters, tags
)
# Dearer than the letters Russian has, too.
_UKRAINIAN = "\u0404\u0406\u0407\u0454\u0456\u0457\u0490\u0491"
_RANGE_STARTS = [start for start, _ in _RANGES]
# Symbols and emoji that are one token, where most of their range take two or three.
_WHOLE_SYMBOLS = (
    "\u2010\u2011\u2013\u2014\u2015\u2018\u2019\u201a\u201c\u201d\u201e\u2020\u2022\u2026\u2030"
    "\u2032\u2033\u2039\u203a\u20ac\u20b9\u2103\u2116\u2122\u2190\u2191\u2192\u2193\u21d2\u2212"
    "\u221a\u221e\u2248\u2264\u2265\u2501\u2503\u2588\u2591\u25a0\u25a1\u25aa\u25b6\u25bc\u25c6"
    "\u25cb\u25cf\u2605\u2606\u2665\u2713\u2714\u2705\u2728\u2764\u27a1\u2b50\U0001f44d\U0001f44f"
    "\U0001f495\U0001f525\U0001f600\U0001f601\U0001f602\U0001f609\U0001f60a\U0001f60d\U0001f618"
    "\U0001f62d\U0001f642\U0001f64f\U0001f923"
)
# How many of one character in a row o200k_base keeps in one token; others: 1, letters 2.
_IN_A_ROW = {
    character: count
    for count, characters in (
        (128, " "),
        (64, "#*-./=_"),
        (32, "%+~"),
        (16, "!:;X\n\t\u2500\u2550\u3000"),
        (8, "\r<>?@^aflox\u00a0\ufffdAF"),
        (4, "\"$'(),\\|bcdehikmrvyBCEILMOPY\u2588\u30fc\u200b"),
        (2, "&[]`{}\x00gjnpqstuwzDGHJKNQRSTUVWZ"),
    )
    for character in characters
}
_LONG = 16
_RUN = 60
_RUN_CHANGE = 20


def estimate_tokens(text: str) -> int:
    """Tokens of a plain text, about as o200k_base would count them.

    Args:
        text: any text; names of special tokens in it count as the plain text they are.

    Returns:
        The estimate in tokens: 0 for the empty text, else at least 1. The estimates of two parts
        add up to that of the whole, but for the piece that is cut and the rounding.
    """
    slices = range(0, len(text), SLICE_CHARACTERS)
    hundredths = sum(_prices_of(text[start : start + SLICE_CHARACTERS]) for start in slices)
    return max(1, (hundredths + 50) // 100) if text else 0


def _prices_of(text: str) -> int:
    """Hundredths of a token: encoded data by its length, the rest piece by piece.

    Piece by piece, a megabyte of base64 would come to the same price thirty times slower.
    """
    hundredths = done = 0
    for data in _DATA.finditer(text):
        rate = _data_rate(set(data[0]))
        if rate:
            hundredths += rate * len(data[0])
            hundredths += sum(map(_prices.__getitem__, _PIECE.findall(text, done, data.start())))
            done = data.end()
    return hundredths + sum(map(_prices.__getitem__, _PIECE.findall(text, done)))


def _data_rate(characters: set[str]) -> int:
    """Hundredths of a token for each character of a long run; 0 where it is not encoded data."""
    if characters <= _DECIMAL:
        return 34
    if len(characters) < _DATA_VARIETY:
        return 0
    if characters <= _LOWER_HEX or characters <= _UPPER_HEX:
        return 57
    mixed = characters & _DECIMAL and characters & _CAPITALS and characters & _SMALLS
    return 67 if mixed else 0


class _Prices(dict[str, int]):
    """Prices by piece: short pieces are remembered, for most of them come again and again."""

    def __missing__(self, piece: str) -> int:
        price = _price(piece)
        if len(piece) < _LONG:
            if len(self) >= REMEMBERED_PIECES:
                self.clear()
            self[piece] = price
        return price


_prices = _Prices()


def _price(piece: str) -> int:
    """Hundredths of a token for one piece; a token at least, but for the end of "don't"."""
    if piece in _CONTRACTIONS:
        return _CONTRACTION
    if len(piece) >= _LONG and _is_monotonous(piece):
        price = sum(100 * piece.count(one) // _IN_A_ROW.get(one, 1) for one in set(piece))
        price += _RUN + _RUN_CHANGE * _changes(piece)
    elif not piece.isascii():
        price = _other_price(piece)
    elif piece[-1].isalpha():
        price = _word_price(piece)
    elif piece[-1].isdigit() or piece.isspace():
        return 100
    else:
        price = _SYMBOLS + _SYMBOL_CHANGE * _changes(piece.strip())
    return max(100, price)


def _is_monotonous(piece: str) -> bool:
    """Whether few characters repeat; other alphabets have pairs of their own in the vocabulary."""
    return len(set(piece)) <= 3 if piece.isascii() else len(set(piece.strip())) == 1


def _changes(piece: str) -> int:
    """How often a character differs from the one before it."""
    return sum(map(ne, piece, piece[1:]))


def _word_price(piece: str) -> int:
    """A word of ASCII letters, with the one character before it that belongs to it."""
    word = piece.lower()
    if word[0].isalpha():
        price = _WORD + _WORD_START
    else:
        price = _WORD if word[0] == " " else _WORD + _WORD_AFTER_SYMBOL
        word = word[1:]
    if not piece.islower():
        price += _WORD_CAPITAL * sum(map(str.isupper, piece))
    return price + sum(map(_PAIR_PRICE.__getitem__, pairwise(word)))


def _other_price(piece: str) -> int:
    """A piece with characters beyond ASCII: each has its price, known pairs a rebate."""
    known = _common_characters()
    price = 0
    for character in piece:
        found = known.get(character)
        price += _RANGES[bisect_right(_RANGE_STARTS, character) - 1][1] if found is None else found
    return price - _MERGED_REBATE * sum(map(_MERGED.__contains__, pairwise(piece)))


@cache
def _common_characters() -> dict[str, int]:
    """Prices of characters that cost less than others of their range.

    Common Chinese characters have a token of their own, rare ones take two or three. The national
    standards list the common ones first (level 1), in the rows named here: Big5 the traditional,
    JIS X 0208 the Japanese, GB 2312 the simplified ones.
    """
    prices: dict[str, int] = {}
    for codec, first, last, price in (
        ("big5", 0xA4, 0xC6, 111),
        ("euc_jp", 0xB0, 0xCF, 120),
        ("gb2312", 0xB0, 0xD7, 84),
    ):
        cells = [bytes(cell) for cell in product(range(first, last + 1), range(0x40, 0xFF))]
        common = {cell.decode(codec, "replace") for cell in cells}
        prices |= {character: price for character in common if "\u3400" <= character < "\ua000"}
    return prices | dict.fromkeys(_UKRAINIAN, 110) | dict.fromkeys(_WHOLE_SYMBOLS, 100)
