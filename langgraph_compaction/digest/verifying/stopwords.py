"""Frequent words that tell six languages of Latin script apart."""

from __future__ import annotations

_WORDS = {
    "English": "the and of to is that it for with are this be not have has you from but which they "
    "were been will would what there their should must before after when by at its into still yet "
    "then how all if could does did we your please",
    "German": "der das und ist nicht ein eine einen einem einer mit auf für von dem den sich auch "
    "wird wurde wurden werden noch nach bei oder wenn dass aber sind zum zur soll sollen muss "
    "müssen ich wir im am vom hat haben wie nur schon bitte über als durch kann",
    "French": "le les est une dans pour que qui sur avec pas vous nous sont mais cette être fait "
    "aux du au par ont doit puis ce ces elle ils il et je ne sa ses été plus sans encore après "
    "avant leur votre tout peut",
    "Spanish": "el los las del que en un una por para con pero más está están es hay muy sin "
    "también ya fue debe cuando donde todavía después según hasta desde lo al se su sus este esta "
    "esto antes ser ha han quiere puede",
    "Portuguese": "os um uma não em ao aos pelo pela com mas são foi também ainda depois já você "
    "ele ela isso está este que para por da dos na nas nos se deve antes ser mais quer pode foram",
    "Italian": "il lo gli della dello degli delle del dei nel nella nelle che sono per con una un "
    "non di anche ma come dal dalla alla al questo questa ancora deve più perché stato stata ha "
    "hanno si da essere prima dopo quando vuole può le",
}

STOP_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split()) for language, words in _WORDS.items()
}
"""Frequent function words by language, of two letters and more, casefolded.

Without those that mean something in another one of the six where they are as frequent ("die",
"was", "do", "no", "son"). A word that two of them share stays where it tells both from the others.
"""
