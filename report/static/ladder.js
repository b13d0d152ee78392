"use strict";
// Any column of a version ladder becomes the base: ratios are divided by those of that column.
{
  const shades = [0.01, 0.03, 0.06, 0.12, 0.2];

  /** @param {number} ratio @param {boolean} lessIsBetter */
  const shade = (ratio, lessIsBetter) => {
    const change = Math.round((Number(ratio.toFixed(2)) - 1) * 100) / 100; // of the ratio as it is printed
    const strength = shades.filter((least) => Math.abs(change) >= least).length;
    return strength ? `${change > 0 === lessIsBetter ? "worse" : "better"}-${strength}` : "same";
  };

  /** Makes the heads of one ladder choose its base.
   * @param {HTMLTableElement} table @returns {((version: string) => void) | null} */
  const prepare = (table) => {
    const part = /** @type {HTMLElement | null} */ (table.closest("[data-metric]"));
    const note = part && part.querySelector(".base-note");
    if (!table.tHead || !part || !note) return null;
    const metric = part.dataset.metric || "";
    const lessIsBetter = table.classList.contains("less");
    const buttons = /** @type {HTMLButtonElement[]} */ ([...table.tHead.querySelectorAll("button")]);
    const first = note.cloneNode(true);
    const rows = [...table.rows].slice(1).filter((row) => row.cells.length > 2).map((row) =>
      [...row.cells].slice(1).map((cell) => ({
        cell,
        kind: cell.className,
        inner: [...cell.childNodes].map((node) => node.cloneNode(true)),
        ratio: cell.dataset.v ? Number(cell.dataset.v) : null,
      })));

    /** @param {number} column */
    const choose = (column) => {
      buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(at === column)));
      for (const cells of rows) {
        const base = cells[column].ratio;
        for (const [at, { cell, kind, inner, ratio }] of cells.entries()) {
          if (column === 0) {
            cell.className = kind;
            cell.replaceChildren(...inner.map((node) => node.cloneNode(true)));
            continue;
          }
          const value = base && ratio ? ratio / base : null;
          cell.className = `heat ${value === null ? "none" : at === column ? "same" : shade(value, lessIsBetter)}`;
          const span = tidemark.element("span", { title: "through the common base; no interval was computed" });
          span.textContent = value === null ? "–" : value.toFixed(2);
          cell.replaceChildren(span);
        }
      }
      const version = buttons[column].dataset.version || "";
      if (column === 0) note.replaceChildren(...[...first.childNodes].map((node) => node.cloneNode(true)));
      else note.textContent = `Ratios to ${version}, as quotients of the ratios to the common base: no intervals, and colour by size alone. For intervals: ./compare.py ${version} VERSION --metric ${metric}`;
    };

    buttons.forEach((button, column) => button.addEventListener("click", () => {
      choose(column);
      const version = buttons[column].dataset.version || "";
      tidemark.choose({ metric, base: column ? version : "" });
      dispatchEvent(new Event("hashchange")); // of the table's rows other ones are shown
    }));
    return (version) => choose(Math.max(0, buttons.findIndex((button) => button.dataset.version === version)));
  };

  const start = () => {
    const tables = /** @type {HTMLTableElement[]} */ ([...document.querySelectorAll("table.ladder")]);
    const ladders = tables.map(prepare);
    const apply = () => {
      const base = tidemark.view(location.hash).get("base") || "";
      ladders.forEach((choose) => choose && choose(base));
      tidemark.titled("base", base && `base ${base}`);
    };
    addEventListener("hashchange", apply); // Back to a base, or to none
    if (tidemark.view(location.hash).has("base")) apply();
  };
  document.addEventListener("DOMContentLoaded", start);
}
