"use strict";
// What every page has: data files call the functions of `tidemark`, the view is in the address, and the footer
// says how old the site is. Texts are only ever set as textContent.

/** @typedef {{until: number | null, at: number}} Written */

const tidemark = {
  /** @type {Map<string, any>} */ shards: new Map(),
  /** @type {any} */ list: null,
  /** @type {Written | null} */ state: null,
  /** @type {((path: string) => void)[]} */ waiting: [],
  /** @type {(table: any, subject: string) => void} of tables.js */ onlyMoved: () => {},
  root: document.body ? document.body.dataset.root || "" : "",

  /** @param {number} at @param {number | null} until */
  written(at, until) { tidemark.state = { at, until }; },
  /** @param {string} path @param {any} content */
  shard(path, content) { tidemark.shards.set(path, content); },
  /** @param {any} content */
  index(content) {
    // The series of a step come together: place, branch and step once, the metrics, and all ids in one text.
    content.series = content.series.flatMap((/** @type {any[]} */ [place, branch, step, metrics, ids]) => {
      const digits = ids.length / metrics.length;
      return metrics.map((/** @type {number} */ metric, /** @type {number} */ at) =>
        [place, branch, step, metric, ids.slice(at * digits, (at + 1) * digits)]);
    });
    tidemark.list = content;
  },

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

  /** @type {Map<string, string>} */ titles: new Map(),
  title: document.title.replace(/ · Tidemark$/, ""),

  /** Names a part of the view in the page's title; an empty text takes it away.
   * @param {string} part @param {string} text */
  titled(part, text) {
    tidemark.titles.set(part, text);
    document.title = `${[tidemark.title, ...tidemark.titles.values()].filter(Boolean).join(", ")} · Tidemark`;
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

  /** Puts choices into the address, beside those that stand there; an empty text takes one away. Back undoes a
   * choice, unless it corrects the one before, as the letters of a text do.
   * @param {Record<string, string>} choices @param {boolean} [corrects] */
  choose(choices, corrects = false) {
    const view = tidemark.view(location.hash);
    for (const [name, value] of Object.entries(choices)) {
      if (value) view.set(name, value);
      else view.delete(name);
    }
    const written = (/** @type {string} */ text) => encodeURIComponent(text).replace(/%(3A|40|2C|2F)/g, decodeURIComponent);
    const parts = [...view].map(([name, value]) => `${name}=${written(value)}`);
    const address = location.href.split("#")[0] + (parts.length ? `#${parts.join("&")}` : "");
    if (address === location.href) return;
    if (corrects) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
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

  /** Shows the parts of the metric in the address, or of that in which the place in the address is. */
  const metrics = () => {
    const links = /** @type {HTMLAnchorElement[]} */ ([...document.querySelectorAll("nav.metrics a")]);
    if (!links.length) return;
    /** @param {string} hash */
    const named = (hash) => tidemark.view(hash).get("metric");
    let chosen = named(links[0].hash);
    const show = () => {
      const place = /** @type {HTMLElement | null | undefined} */ (
        document.getElementById(location.hash.slice(1))?.closest("div[data-metric]"));
      const wanted = named(location.hash) || place?.dataset.metric;
      // Without a metric in the address, as at first and after going back to there, it is the first one.
      if (links.some((link) => named(link.hash) === wanted)) chosen = wanted;
      else if (!location.hash) chosen = named(links[0].hash);
      for (const part of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("div[data-metric]"))) {
        part.hidden = part.dataset.metric !== chosen;
      }
      for (const link of links) link.setAttribute("aria-current", String(named(link.hash) === chosen));
      const other = links.slice(1).find((link) => named(link.hash) === chosen);
      tidemark.titled("metric", (other && other.textContent) || "");
    };
    for (const link of links) {
      link.addEventListener("click", (event) => {
        event.preventDefault();
        tidemark.choose({ metric: named(link.hash) || "" });
        show();
      });
    }
    addEventListener("hashchange", show);
    show();
  };

  /** Selects a text and copies it. The selection comes first: from disk a browser may ask before it lets a
   * script write to the clipboard, or never answer.
   * @param {HTMLElement} place @returns {Promise<boolean>} whether it was copied */
  const copied = async (place) => {
    getSelection()?.selectAllChildren(place);
    if (document.execCommand("copy")) return true;
    try {
      await navigator.clipboard.writeText(place.textContent || "");
      return true;
    } catch {
      return false;
    }
  };

  const copyButtons = () => {
    for (const block of document.querySelectorAll(".commands")) {
      const [head, code] = [block.querySelector("h3"), block.querySelector("code")];
      if (!head || !code) continue;
      const button = tidemark.element("button", { type: "button", class: "copy", "aria-label": `Copy: ${head.textContent}` }, "Copy");
      const said = tidemark.element("span", { class: "quiet", role: "status" });
      button.addEventListener("click", async () => {
        said.textContent = (await copied(code)) ? "copied" : "selected: copy it with the keyboard";
      });
      const beside = tidemark.element("div", {});
      head.replaceWith(beside);
      beside.append(head, said);
      block.append(button);
    }
  };

  document.addEventListener("DOMContentLoaded", () => { freshness(); metrics(); copyButtons(); });
}
