// Tables that change: rows are known by a key, cells change where their text does, and nothing is made anew without need.
const element = (name, text, kind) => {
  const made = document.createElement(name);
  if (text != null) made.textContent = text;
  if (kind) made.className = kind;
  return made;
};

const write = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

// A column: { head, text(row), value(row) to sort by, number, wide: left out on a phone, words: may wrap, share(row): 0..1 as a bar }
class LiveTable {
  constructor(place, caption, columns, { most = 100, sortedBy = null, nothing }) {
    Object.assign(this, { columns, most, sortedBy, nothing, downwards: true, rows: new Map(), orderedAt: -Infinity });
    const table = element("table");
    table.append(element("caption", caption));
    const heads = table.createTHead().insertRow();
    this.heads = columns.map((column, i) => this.head(heads, column, i));
    this.body = table.createTBody();
    this.rest = element("p", null, "quiet");
    document.getElementById(place).append(table, this.rest);
    this.mark();
  }

  head(heads, column, i) {
    const head = element("th", null, this.kind(column));
    head.scope = "col";
    if (column.value) {
      const button = element("button", column.head);
      button.type = "button";
      button.addEventListener("click", () => {
        this.downwards = this.sortedBy === i ? !this.downwards : true;
        this.sortedBy = i;
        this.orderedAt = -Infinity;
        this.mark();
        if (this.last) this.set(this.last.rows, this.last.key);
      });
      head.append(button);
    } else {
      head.textContent = column.head;
    }
    heads.append(head);
    return head;
  }

  kind(column) {
    return ["number", "wide", "words"].filter((word) => column[word]).join(" ");
  }

  mark() {
    this.heads.forEach((head, i) => {
      if (i === this.sortedBy) head.setAttribute("aria-sort", this.downwards ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }

  // The order changes once a second at most, so that a row can be read.
  order(rows, key) {
    const by = this.columns[this.sortedBy]?.value;
    if (!by) return rows;
    const place = new Map([...this.rows.keys()].map((key, i) => [key, i]));
    if (performance.now() - this.orderedAt < 1000 && rows.every((row) => place.has(key(row)))) {
      return rows.toSorted((a, b) => place.get(key(a)) - place.get(key(b)));
    }
    this.orderedAt = performance.now();
    const sign = this.downwards ? -1 : 1;
    const compare = (a, b) => typeof a === "string" ? -a.localeCompare(b) : (a ?? -1) - (b ?? -1);
    return rows.toSorted((a, b) => sign * compare(by(a), by(b)));
  }

  set(rows, key) {
    this.last = { rows, key };
    const shown = this.order(rows, key).slice(0, this.most);
    const keys = new Set(shown.map(key));
    for (const [old, row] of this.rows) {
      if (keys.has(old)) continue;
      row.remove();
      this.rows.delete(old);
    }
    const next = new Map();
    shown.forEach((row, i) => {
      const own = this.rows.get(key(row)) ?? this.row();
      this.columns.forEach((column, cell) => this.fill(own.cells[cell], column, row));
      if (this.body.rows[i] !== own) this.body.insertBefore(own, this.body.rows[i] ?? null);
      next.set(key(row), own);
    });
    this.rows = next;
    this.empty(shown.length === 0);
    write(this.rest, rows.length > shown.length ? `and ${rows.length - shown.length} more` : "");
  }

  row() {
    const row = element("tr");
    this.columns.forEach((column, i) => {
      const cell = element(i === 0 ? "th" : "td", null, this.kind(column));
      if (i === 0) cell.scope = "row";
      cell.append(element("span"));
      if (column.share) cell.append(element("span", null, "share"));
      row.append(cell);
    });
    return row;
  }

  fill(cell, column, row) {
    write(cell.firstChild, column.text(row));
    if (column.share) cell.lastChild.style.width = `${Math.round(100 * Math.min(1, column.share(row) || 0))}%`;
  }

  empty(isEmpty) {
    if (isEmpty && !this.none) {
      this.none = element("tr", null, "empty");
      const cell = element("td", this.nothing);
      cell.colSpan = this.columns.length;
      this.none.append(cell);
      this.body.append(this.none);
    } else if (!isEmpty && this.none) {
      this.none.remove();
      this.none = null;
    }
  }
}
