"use strict";
// What every page has: data files call the functions of `tidemark`; tables are sorted, lists are filtered,
// and the footer says how old the site is. Texts are only ever set as textContent.

/** @typedef {{until: number | null, at: number}} Written */

const tidemark = {
  /** @type {Map<string, any>} */ shards: new Map(),
  /** @type {Map<string, any>} */ profilesByName: new Map(),
  /** @type {any} */ list: null,
  /** @type {any[]} */ profileList: [],
  /** @type {Written | null} */ state: null,
  /** @type {((path: string) => void)[]} */ waiting: [],
  root: document.body ? document.body.dataset.root || "" : "",

  /** @param {number} at @param {number | null} until */
  written(at, until) { tidemark.state = { at, until }; },
  /** @param {string} path @param {any} content */
  shard(path, content) { tidemark.shards.set(path, content); },
  /** @param {any} content */
  index(content) { tidemark.list = content; },
  /** @param {string} name @param {any} content */
  profile(name, content) { tidemark.profilesByName.set(name, content); },
  /** @param {any[]} rows */
  profiles(rows) { tidemark.profileList = rows; },

  /** Loads a data file of the site; from disk a script is all that can be loaded.
   * @param {string} path @returns {Promise<boolean>} whether it is there */
  load(path) {
    return new Promise((resolve) => {
      const script = document.createElement("script");
      script.src = tidemark.root + path;
      script.onload = () => resolve(true);
      script.onerror = () => resolve(false);
      document.head.append(script);
    });
  },

  /** @param {string} tag @param {Record<string, string>} attributes @param {...(Node | string)} children
   * @returns {HTMLElement} */
  element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  },

  /** @param {string} hash @returns {Map<string, string>} the view's state in the address */
  view(hash) {
    const found = new Map();
    for (const part of hash.replace(/^#/, "").split("&")) {
      const [name, value] = part.split("=");
      if (name && value !== undefined) {
        try { found.set(name, decodeURIComponent(value)); } catch { /* not ours */ }
      }
    }
    return found;
  },
};

{
  const STALE_HOURS = 26;

  const freshness = () => {
    const place = document.getElementById("freshness");
    if (!place || !tidemark.state) return;
    const { at, until } = tidemark.state;
    const text = (/** @type {number} */ seconds) =>
      new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ") + " UTC";
    const hours = until === null ? Infinity : (Date.now() / 1000 - until) / 3600;
    const old = hours > STALE_HOURS && Number.isFinite(hours)
      ? `, ${hours < 72 ? `${Math.floor(hours)} hours` : `${Math.floor(hours / 24)} days`} ago`
      : "";
    place.textContent = `The site: ${until === null ? "no data" : `data up to ${text(until)}${old}`}, written ${text(at)}.`;
    place.classList.toggle("stale", hours > STALE_HOURS);
  };

  /** @param {HTMLTableCellElement} cell */
  const sortKey = (cell) => {
    const given = cell.dataset.v;
    const text = (given || cell.textContent || "").trim();
    const number = Number.parseFloat(text.replace(/[\u202f\s]/g, "").replace("−", "-").replace("±", "").replace(/[▾▴=?]/g, ""));
    return Number.isNaN(number) || /^\d{4}-\d\d-\d\d/.test(text) ? text : number;
  };

  /** @param {HTMLTableElement} table @param {number} column @param {HTMLTableCellElement} head */
  const sort = (table, column, head) => {
    const up = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentElement?.children || []) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row, at) => ({ row, at, key: row.cells[column] ? sortKey(row.cells[column]) : "" }));
    rows.sort((a, b) => {
      const order = typeof a.key === "number" && typeof b.key === "number"
        ? a.key - b.key
        : String(a.key).localeCompare(String(b.key), "en", { numeric: true });
      return (up ? -order : order) || a.at - b.at;
    });
    body.append(...rows.map((one) => one.row));
  };

  const sortable = () => {
    for (const table of document.querySelectorAll("table.sortable")) {
      const heads = /** @type {HTMLTableElement} */ (table).tHead?.rows[0].cells || [];
      [...heads].forEach((head, column) => {
        const button = tidemark.element("button", { type: "button" }, ...head.childNodes);
        head.replaceChildren(button);
        button.addEventListener("click", () => sort(/** @type {HTMLTableElement} */ (table), column, head));
      });
    }
  };

  const filters = () => {
    const place = /** @type {HTMLElement | null} */ (document.querySelector("[data-filters]"));
    const rows = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("table.filtered tbody tr")]);
    if (!place || !rows.length) return;
    const chosen = tidemark.view(location.hash);
    const apply = () => {
      for (const row of rows) {
        row.hidden = ![...chosen].every(([name, value]) => !value || !(name in row.dataset) || row.dataset[name] === value);
      }
      history.replaceState(null, "", "#" + [...chosen].filter(([, value]) => value).map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&"));
    };
    for (const name of ["status", "branch", "direction"]) {
      const values = [...new Set(rows.map((row) => row.dataset[name] || ""))].sort();
      const select = /** @type {HTMLSelectElement} */ (tidemark.element("select", { id: `filter-${name}` }));
      select.append(new Option("all", ""), ...values.map((value) => new Option(value, value, false, chosen.get(name) === value)));
      select.addEventListener("change", () => { chosen.set(name, select.value); apply(); });
      place.append(tidemark.element("label", {}, tidemark.element("span", {}, name), select));
    }
    place.hidden = false;
    if (chosen.size) apply();
  };

  /** Shows the parts of the metric in the address, or of that in which the place in the address is. */
  const metrics = () => {
    const links = /** @type {HTMLAnchorElement[]} */ ([...document.querySelectorAll("nav.metrics a")]);
    if (!links.length) return;
    /** @param {string} hash */
    const named = (hash) => tidemark.view(hash).get("metric");
    let chosen = named(links[0].hash);
    const show = () => {
      const place = /** @type {HTMLElement | null | undefined} */ (
        document.getElementById(location.hash.slice(1))?.closest("[data-metric]"));
      const wanted = named(location.hash) || place?.dataset.metric;
      // Without a metric in the address, as at first and after going back to there, it is the first one.
      if (links.some((link) => named(link.hash) === wanted)) chosen = wanted;
      else if (!location.hash) chosen = named(links[0].hash);
      for (const part of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-metric]"))) {
        part.hidden = part.dataset.metric !== chosen;
      }
      for (const link of links) link.setAttribute("aria-current", String(named(link.hash) === chosen));
    };
    addEventListener("hashchange", show);
    show();
  };

  document.addEventListener("DOMContentLoaded", () => { freshness(); sortable(); filters(); metrics(); });
}
