"use strict";
// Tables are sorted and filtered, and long ones begin with what moved. All of it is in the address.
{
  /** @param {ParentNode} place @param {string} selector @returns {any[]} */
  const all = (place, selector) => [...place.querySelectorAll(selector)];
  const view = () => tidemark.view(location.hash);

  /** @param {HTMLTableCellElement} cell */
  const sortKey = (cell) => {
    const given = cell.dataset.v;
    const text = (given || cell.textContent || "").trim();
    const number = Number.parseFloat(text.replace(/[\u202f\s]/g, "").replace("−", "-").replace("±", "").replace(/[▾▴=?]/g, ""));
    return Number.isNaN(number) || /^\d{4}-\d\d-\d\d/.test(text) ? text : number;
  };

  /** @param {HTMLTableRowElement[]} rows as they were written @param {number} column @param {boolean} down */
  const sorted = (rows, column, down) => {
    const keyed = rows.map((row, at) => ({ row, at, key: row.cells[column] ? sortKey(row.cells[column]) : "" }));
    keyed.sort((a, b) => {
      const order = typeof a.key === "number" && typeof b.key === "number"
        ? a.key - b.key
        : String(a.key).localeCompare(String(b.key), "en", { numeric: true });
      return (down ? -order : order) || a.at - b.at;
    });
    return keyed.map(({ row }) => row);
  };

  /** Makes a table sortable by the heads of its columns.
   * @param {HTMLTableElement} table @param {string} name of the choice in the address */
  const sortable = (table, name) => {
    const heads = /** @type {HTMLTableCellElement[]} */ ([...(table.tHead?.rows[0].cells || [])]);
    const names = heads.map((head) => (head.textContent || "").trim());
    const rows = [...table.tBodies[0].rows];
    const apply = () => {
      if (location.hash && !location.hash.includes("=")) return; // a place in the page, not a view of it
      const wanted = view().get(name) || "";
      const down = wanted.startsWith("-");
      const column = names.indexOf(down ? wanted.slice(1) : wanted);
      for (const head of heads) head.removeAttribute("aria-sort");
      if (column >= 0) heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
      table.tBodies[0].append(...(column < 0 ? rows : sorted(rows, column, down)));
    };
    heads.forEach((head, column) => {
      const button = tidemark.element("button", { type: "button" }, ...head.childNodes);
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") === "ascending";
        tidemark.choose({ [name]: `${up ? "-" : ""}${names[column]}` });
        apply();
      });
    });
    addEventListener("hashchange", apply);
    if (view().has(name)) apply();
  };

  /** @param {string} name @param {string} label @param {string} type @param {string} subject what it filters */
  const field = (name, label, type, subject) => {
    const input = /** @type {HTMLInputElement} */ (tidemark.element("input", { id: `filter-${name}`, type, "aria-label": `${label} of ${subject}` }));
    return { name, input, label: tidemark.element("label", {}, tidemark.element("span", {}, label), input) };
  };

  /** @param {HTMLElement[]} rows @param {string} name @param {string} subject */
  const choice = (rows, name, subject) => {
    const values = [...new Set(rows.flatMap((row) => (row.dataset[name] || "").split("\n")).filter(Boolean))].sort();
    const input = /** @type {HTMLSelectElement} */ (tidemark.element("select", { id: `filter-${name}`, "aria-label": `${name} of ${subject}` }));
    input.append(new Option("all", ""), ...values.map((value) => new Option(value, value)));
    return { name, input, label: tidemark.element("label", {}, tidemark.element("span", {}, name), input) };
  };

  /** Fills a place for filters, whose table has values for each in the attributes of its rows: several of one kind
   * are on lines of their own. @param {HTMLElement} place */
  const filters = (place) => {
    const table = /** @type {HTMLTableElement} */ (document.querySelector("table.filtered"));
    const rows = /** @type {HTMLElement[]} */ (table ? [...table.tBodies[0].rows] : []);
    if (!rows.length) return;
    const subject = place.dataset.subject || "rows";
    const fields = [
      field("text", "text", "search", subject),
      ...(place.dataset.filters || "").split(" ").map((name) => choice(rows, name, subject)),
      field("from", "from", "date", subject),
      field("to", "to", "date", subject),
    ];
    const texts = rows.map((row) => [row.textContent, ...all(row, "[title]").map((part) => part.title)].join(" ").toLowerCase());
    const count = tidemark.element("p", { class: "count", role: "status" });
    const clear = tidemark.element("button", { type: "button" }, `Show all ${subject}`);
    const empty = tidemark.element("p", { class: "note" }, `None of the ${subject} fits these filters.`);

    /** @param {HTMLElement} row @param {number} at @param {Map<string, string>} chosen */
    const fits = (row, at, chosen) => [...chosen].every(([name, value]) => {
      if (name === "text") return value.toLowerCase().split(/\s+/).every((word) => texts[at].includes(word));
      if (name === "from" || name === "to") return name === "from" ? (row.dataset.day || "") >= value : (row.dataset.day || "") <= value;
      return (row.dataset[name] || "").split("\n").includes(value);
    });
    const apply = () => {
      const found = view();
      const chosen = new Map(fields.flatMap(({ name }) => (found.get(name) ? [[name, found.get(name) || ""]] : [])));
      for (const { name, input } of fields) {
        const value = chosen.get(name) || "";
        if (input instanceof HTMLSelectElement && ![...input.options].some((option) => option.value === value)) input.append(new Option(value, value));
        if (input.value !== value) input.value = value;
      }
      rows.forEach((row, at) => { row.hidden = !fits(row, at, chosen); });
      const shown = rows.filter((row) => !row.hidden).length;
      const counted = `${rows.length} ${rows.length === 1 ? subject.replace(/s$/, "") : subject}`;
      count.textContent = chosen.size ? `${shown} of ${counted}` : counted;
      tidemark.titled("filters", chosen.size ? [...chosen].map(([name, value]) => `${name} ${value}`).join(", ") : "");
      clear.hidden = !chosen.size;
      empty.hidden = shown > 0;
      /** @type {HTMLElement} */ (table.parentElement).hidden = shown === 0;
      for (const link of all(document, "a[data-keeps-view]")) link.hash = location.hash;
    };
    for (const { name, input } of fields) {
      let typed = false;
      input.addEventListener("input", () => {
        tidemark.choose({ [name]: input.value }, typed);
        typed = input.type === "search";
        apply();
      });
      input.addEventListener("change", () => { typed = false; });
    }
    clear.addEventListener("click", () => {
      tidemark.choose(Object.fromEntries(fields.map(({ name }) => [name, ""])));
      apply();
      fields[0].input.focus();
    });
    place.setAttribute("role", "search");
    place.setAttribute("aria-label", `Filters of ${subject}`);
    place.append(...fields.map(({ label }) => label), clear);
    place.after(count, empty);
    place.hidden = false;
    addEventListener("hashchange", apply);
    apply();
  };

  const SHORT = 12; // a table of so many rows is read at once

  /** Whether a row is seen between the head of a group and the next one. @param {HTMLTableRowElement} group */
  const hasVisible = (group) => {
    for (let row = /** @type {HTMLTableRowElement | null} */ (group.nextElementSibling); row && !row.classList.contains("group"); row = /** @type {HTMLTableRowElement | null} */ (row.nextElementSibling)) {
      if (!row.hidden) return true;
    }
    return false;
  };

  /** Begins a long table with the rows that moved, or of which nothing is known, and says how many are hidden.
   * @param {HTMLTableElement} table whose rows have `data-moved` @param {string} subject what a row is */
  const onlyMoved = (table, subject) => {
    const rows = [...table.tBodies[0].rows];
    const still = rows.filter((row) => row.dataset.moved === "no");
    if (rows.length <= SHORT || !still.length) return;
    const moved = rows.filter((row) => row.dataset.moved === "yes").length;
    const said = tidemark.element("p", { class: "count", role: "status" });
    const button = tidemark.element("button", { type: "button" });
    const groups = [...table.tBodies[0].rows].filter((row) => row.classList.contains("group"));
    const apply = () => {
      const isOtherBase = view().has("base"); // of a ladder: what moved against another base was not judged
      const isWhole = isOtherBase || view().get("rows") === "all";
      for (const row of still) row.hidden = !isWhole;
      for (const group of groups) group.hidden = !isWhole && !hasVisible(group);
      said.textContent = isWhole ? `All ${moved + still.length} ${subject}` : `${moved} of ${moved + still.length} ${subject}: ${still.length} that did not move ${still.length > 1 ? "are" : "is"} hidden`;
      button.textContent = isWhole ? `Hide the ${subject} that did not move` : `Show all ${moved + still.length} ${subject}`;
      button.hidden = isOtherBase;
    };
    button.addEventListener("click", () => {
      tidemark.choose({ rows: view().get("rows") === "all" ? "" : "all" });
      dispatchEvent(new Event("hashchange"));
    });
    table.parentElement?.before(tidemark.element("div", { class: "only-moved" }, said, button));
    addEventListener("hashchange", apply);
    addEventListener("beforeprint", () => { for (const row of rows) row.hidden = false; });
    addEventListener("afterprint", apply);
    apply();
  };
  tidemark.onlyMoved = onlyMoved;

  document.addEventListener("DOMContentLoaded", () => {
    all(document, "table.moved").forEach((table) => onlyMoved(table, "steps"));
    all(document, "table.sortable").forEach((table, at) => sortable(table, at ? `sort${at + 1}` : "sort"));
    all(document, "[data-filters]").forEach(filters);
  });
}
