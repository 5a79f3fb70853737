"""A screen as plain characters, for eyes and golden texts: **bold**, _italic_, `code`, › quote, [ button ]."""

from hermes.chat.screens.screen import Screen

SIGNS = {"bold": "**", "italic": "_", "code": "`", "expandable_blockquote": "›"}


def shown(screen: Screen) -> str:
    """Return the message and its keyboard as one would write them down; word joiners are left out."""
    raw = screen.text.encode("utf-16-le")
    marks: dict[int, str] = {}
    for entity in screen.entities:
        sign, end = SIGNS[entity.type], entity.offset + entity.length
        marks[entity.offset] = marks.get(entity.offset, "") + sign
        marks[end] = ("" if sign == "›" else sign) + marks.get(end, "")
    pieces, at = [], 0
    for place in sorted(marks):
        pieces += [raw[2 * at : 2 * place].decode("utf-16-le"), marks[place]]
        at = place
    text = "".join([*pieces, raw[2 * at :].decode("utf-16-le")]).replace("\u2060", "")
    rows = ["  ".join(f"[ {button.text} ]" for button in row) for row in screen.rows]
    return "\n".join([text, *rows, *(["(forced reply)"] if screen.force_reply else [])])
