// Elements from values; text goes in as text, so that nothing a lab file says becomes markup.

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  text = "",
  className = "",
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (text !== "") {
    made.textContent = text;
  }
  if (className !== "") {
    made.className = className;
  }
  return made;
}

export function section(title: string, intro = ""): HTMLElement {
  const made = element("section");
  made.append(element("h2", title));
  if (intro !== "") {
    made.append(element("p", intro, "intro"));
  }
  return made;
}

// What is there for who wants it, and does not stand in the way.
export function folded(title: string, content: HTMLElement): HTMLElement {
  const details = element("details");
  details.append(element("summary", title), content);
  return details;
}

export interface Column<Row> {
  title: string;
  value: (row: Row) => string;
  numeric?: boolean;
}

export function table<Row>(rows: Row[], columns: Column<Row>[], caption: string): HTMLElement {
  const made = element("table");
  made.append(element("caption", caption));
  const head = element("tr");
  for (const column of columns) {
    const cell = element("th", column.title, column.numeric ? "number" : "");
    cell.scope = "col";
    head.append(cell);
  }
  const top = element("thead");
  top.append(head);
  const body = element("tbody");
  for (const row of rows) {
    const line = element("tr");
    for (const column of columns) {
      line.append(element("td", column.value(row), column.numeric ? "number" : ""));
    }
    body.append(line);
  }
  made.append(top, body);
  const scroller = element("div", "", "scroller");
  scroller.tabIndex = 0;
  scroller.append(made);
  return scroller;
}
