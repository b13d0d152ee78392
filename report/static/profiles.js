"use strict";
// Subtracts the CPU profiles of any two nights: stacks as widths in µs per query, coloured by their change.
{
  /** @typedef {{name: string, path: string, uid: string, day: string, box: string, suite: string, step: string, version: string}} Entry */
  /** @typedef {{name: string, before: number, after: number, children: Map<string, Frame>}} Frame */

  const SVG = "http://www.w3.org/2000/svg";
  const WIDTH = 1200;
  const ROW = 18;
  const LEAST = 1.2;
  const LETTER = 6.4;
  const MAX_FUNCTIONS = 60;

  /** @param {string} id @returns {any} */
  const by = (id) => document.getElementById(id);
  /** @param {number} ns */
  const micro = (ns) => `${(ns / 1000).toFixed(2)} µs`;
  /** @param {number} ns */
  const signed = (ns) => `${ns < 0 ? "−" : "+"}${(Math.abs(ns) / 1000).toFixed(2)} µs`;

  /** @type {Entry[]} */ let entries = [];

  /** @param {Entry} entry @returns {Promise<Record<string, number>>} nanoseconds per query by stack */
  const stacks = async (entry) => {
    if (!tidemark.profilesByName.has(entry.name)) await tidemark.load(entry.path);
    return (tidemark.profilesByName.get(entry.name) || { stacks: {} }).stacks;
  };

  /** @param {Record<string, number>} before @param {Record<string, number>} after @param {string} role */
  const tree = (before, after, role) => {
    /** @type {Frame} */ const root = { name: "all", before: 0, after: 0, children: new Map() };
    for (const [side, found] of /** @type {["before" | "after", Record<string, number>][]} */ ([["before", before], ["after", after]])) {
      for (const [stack, ns] of Object.entries(found)) {
        const frames = stack.split(";");
        if (role && frames[0] !== role) continue;
        root[side] += ns;
        let at = root;
        for (const name of frames) {
          let next = at.children.get(name);
          if (!next) {
            next = { name, before: 0, after: 0, children: new Map() };
            at.children.set(name, next);
          }
          next[side] += ns;
          at = next;
        }
      }
    }
    return root;
  };

  /** @param {Frame} frame */
  const shade = (frame) => {
    const change = frame.after - frame.before;
    const share = Math.abs(change) / Math.max(frame.after, frame.before, 1);
    if (share < 0.01) return "cell same";
    const strength = [0.01, 0.05, 0.15, 0.4, 0.8].filter((least) => share >= least).length;
    return `cell ${change > 0 ? "worse" : "better"}-${strength}`;
  };

  /** @param {Frame} root @param {Frame} top the root of everything */
  const draw = (root, top) => {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("class", "chart flame");
    svg.setAttribute("role", "group");
    svg.setAttribute("aria-label", "Stacks: width is CPU time per query");
    let depth = 0;
    const scale = WIDTH / Math.max(root.after, root.before, 1);
    /** @param {Frame} frame @param {number} x @param {number} level */
    const add = (frame, x, level) => {
      const width = Math.max(frame.after, frame.before) * scale;
      if (width < LEAST) return;
      depth = Math.max(depth, level);
      const group = document.createElementNS(SVG, "g");
      const label = `${frame.name}: ${micro(frame.before)} before, ${micro(frame.after)} after, ${signed(frame.after - frame.before)}`;
      group.setAttribute("tabindex", "0");
      group.setAttribute("role", "button");
      group.setAttribute("aria-label", label);
      const title = document.createElementNS(SVG, "title");
      title.textContent = label;
      const rect = document.createElementNS(SVG, "rect");
      for (const [name, value] of Object.entries({ x: x.toFixed(1), y: level * ROW, width: width.toFixed(1), height: ROW - 1, class: shade(frame) })) rect.setAttribute(name, String(value));
      group.append(title, rect);
      if (width > frame.name.length * LETTER + 6) { // a name that is cut short would say another thing than its label
        const text = document.createElementNS(SVG, "text");
        text.setAttribute("x", (x + 3).toFixed(1));
        text.setAttribute("y", String(level * ROW + 12));
        text.textContent = frame.name;
        group.append(text);
      }
      const open = () => draw(frame === root ? top : frame, top);
      group.addEventListener("click", open);
      group.addEventListener("keydown", (event) => { if (/** @type {KeyboardEvent} */ (event).key === "Enter") open(); });
      svg.append(group);
      let left = x;
      for (const child of [...frame.children.values()].sort((a, b) => Math.max(b.after, b.before) - Math.max(a.after, a.before))) {
        add(child, left, level + 1);
        left += Math.max(child.after, child.before) * scale;
      }
    };
    add(root, 0, 0);
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${(depth + 1) * ROW}`);
    by("flames").replaceChildren(svg);
  };

  /** @param {Record<string, number>} before @param {Record<string, number>} after @param {string} role */
  const functions = (before, after, role) => {
    /** @type {Map<string, [number, number]>} */ const own = new Map();
    [before, after].forEach((found, side) => {
      for (const [stack, ns] of Object.entries(found)) {
        const frames = stack.split(";");
        if (role && frames[0] !== role) continue;
        const name = frames[frames.length - 1];
        const pair = own.get(name) || /** @type {[number, number]} */ ([0, 0]);
        pair[side] += ns;
        own.set(name, pair);
      }
    });
    const el = tidemark.element;
    const rows = [...own].sort(([, a], [, b]) => Math.abs(b[1] - b[0]) - Math.abs(a[1] - a[0])).slice(0, MAX_FUNCTIONS)
      .map(([name, [old, now]]) => el("tr", {}, el("th", { scope: "row" }, el("code", {}, name)),
        el("td", { class: "n" }, micro(old)), el("td", { class: "n" }, micro(now)), el("td", { class: "n" }, signed(now - old))));
    by("functions").replaceChildren(el("table", {}, el("caption", {}, "CPU time per query in each function itself, largest change first"),
      el("thead", {}, el("tr", {}, ...["function", "before", "after", "change"].map((head) => el("th", { scope: "col" }, head)))), el("tbody", {}, ...rows)));
  };

  /** Says what the address asks for in vain, and shows no other profile in its place. @param {string} text */
  const missing = (text) => {
    for (const id of ["totals", "flames", "functions"]) by(id).replaceChildren();
    by("state").textContent = `This site has no profile of ${text}. Choose a step and two nights above.`;
    document.title = "Unknown profiles · Tidemark";
    document.documentElement.dataset.ready = "unknown";
  };

  let showing = 0; // the number of the latest view: loading an older one may end after it

  /** @param {Entry} before @param {Entry} after @param {string} wanted the role in the address */
  const show = async (before, after, wanted) => {
    const number = ++showing;
    by("state").textContent = "Loading both profiles.";
    const [old, now] = await Promise.all([stacks(before), stacks(after)]);
    if (number !== showing) return;
    const roles = [...new Set([...Object.keys(old), ...Object.keys(now)].map((stack) => stack.split(";")[0]))].sort();
    const role = roles.includes(wanted) ? wanted : "";
    by("role").replaceChildren(new Option("all processes", ""), ...roles.map((name) => new Option(name, name, false, name === role)));
    const root = tree(old, now, role);
    by("state").textContent = `${after.version} of ${after.day} on ${after.box}, against ${before.version} of ${before.day} on ${before.box}.`;
    by("totals").replaceChildren(tidemark.element("p", { class: "sentence" }, `A query takes ${micro(root.before)} of CPU before and ${micro(root.after)} after: ${signed(root.after - root.before)}.`));
    draw(root, root);
    functions(old, now, role);
    document.title = `Profiles of ${after.step}, ${after.day} against ${before.day} · Tidemark`;
    document.documentElement.dataset.ready = `${before.name} ${after.name}`;
  };

  /** @param {string} step @param {string} before @param {string} after */
  const fill = (step, before, after) => {
    const steps = [...new Set(entries.map((entry) => entry.step))].sort();
    by("step").replaceChildren(...steps.map((name) => new Option(name, name, false, name === step)));
    const here = entries.filter((entry) => entry.step === step);
    for (const [id, chosen] of [["before", before], ["after", after]]) {
      by(id).replaceChildren(...here.map((entry) => new Option(`${entry.day} ${entry.version} (${entry.box}, ${entry.suite})`, entry.name, false, entry.name === chosen)));
    }
  };

  /** Shows the view in the address. */
  const apply = () => {
    const view = tidemark.view(location.hash);
    /** @param {string} key @param {string} name */
    const of = (key, name) => entries.find((entry) => entry.name === view.get(name)) || entries.find((entry) => entry.uid === view.get(key) && (!view.get("step") || entry.step === view.get("step")));
    const unknown = [["after", "b"], ["before", "a"]].filter(([key, name]) => (view.has(key) || view.has(name)) && !of(key, name)).map(([key, name]) => view.get(name) || view.get(key));
    const after = of("after", "b") || entries[0];
    const before = of("before", "a") || entries.find((entry) => entry.step === after.step && entry.version !== after.version) || after;
    fill(after.step, before.name, after.name);
    if (unknown.length) {
      showing += 1;
      missing(unknown.join(" and "));
      return;
    }
    tidemark.choose({ a: before.name, b: after.name, after: "", before: "", step: "" }, true);
    show(before, after, view.get("role") || "");
  };

  const start = () => {
    if (!by("controls") || !tidemark.profileList.length) return;
    entries = tidemark.profileList.map(([name, path, uid, day, box, suite, step, version]) => ({ name, path, uid, day, box, suite, step, version }));
    const choose = (/** @type {Record<string, string>} */ choices) => {
      tidemark.choose(choices);
      apply();
    };
    by("step").addEventListener("change", () => {
      const here = entries.filter((entry) => entry.step === by("step").value);
      choose({ a: (here[1] || here[0]).name, b: here[0].name });
    });
    for (const id of ["before", "after"]) by(id).addEventListener("change", () => choose({ a: by("before").value, b: by("after").value }));
    by("role").addEventListener("change", () => choose({ role: by("role").value }));
    addEventListener("hashchange", apply);
    apply();
  };
  document.addEventListener("DOMContentLoaded", start);
}
