"""Tables of the book between marks that say which command writes them."""


def fill(book, command, tables):
    """Puts each of `tables` between its marks in the file `book`."""
    text = book.read_text()
    for name, table in tables.items():
        begin, end = f"<!-- {name}: written by {command} -->", f"<!-- {name}: end -->"
        if begin not in text:
            raise SystemExit(f"{book} has no place for {name}: {begin}")
        before, _, after = text.partition(begin)
        text = f"{before}{begin}\n{table}\n{end}{after.partition(end)[2]}"
    book.write_text(text)
