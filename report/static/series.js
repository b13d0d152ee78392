"use strict";
// The series explorer: the view in the address is what is shown, and every control changes the address.
{
  const { name, baseOf, points, shown, comparable } = seriesValues;
  const DAY = 86400;
  const ids = ["place", "branch", "step", "metric"];
  const DEFAULTS = { y: "rel", boxes: "one" };

  /** @param {string} id @returns {any} */
  const by = (id) => document.getElementById(id);
  /** @type {Series[]} */ let all = [];
  /** @type {Series | null} */ let chosen = null;
  /** @type {any} */ let plot = null;
  /** @type {Point[][]} */ let drawn = [];
  let drawing = 0; // the number of the latest view: loading an older one may end after it

  const list = () => tidemark.list;
  const view = () => tidemark.view(location.hash);

  /** Changes the view. @param {Record<string, string>} choices @param {boolean} [corrects] */
  const choose = (choices, corrects) => {
    tidemark.choose(choices, corrects);
    show();
  };

  /** The zoom in the address, as two times in seconds. @returns {[number, number] | null} */
  const zoomed = () => {
    const [first, last] = (view().get("zoom") || "").split(",").map((text) => Date.parse(`${text}Z`) / 1000);
    return first < last ? [first, last] : null;
  };

  /** @param {[number, number] | null} range */
  const zoom = (range) => choose({ zoom: range ? range.map((at) => new Date(at * 1000).toISOString().slice(0, 16)).join(",") : "" });

  /** @param {Point} point */
  const pick = (point) => {
    const picked = (view().get("picked") || "").split(",").filter((uid) => uid && uid !== point.uid);
    choose({ picked: [...picked, point.uid].slice(-2).join(",") });
  };

  /** @param {string} text */
  const title = (text) => { document.title = `${text} · Tidemark`; };

  const draw = async () => {
    const number = ++drawing;
    const series = /** @type {Series} */ (chosen);
    const { drawn: rows, left } = by("boxes").value === "all" ? comparable(all, series) : { drawn: [series], left: [] };
    by("state").textContent = `Loading ${name(series)}.`;
    const loaded = await Promise.all(rows.map(points));
    if (number !== drawing) return;
    const from = by("from").value ? Date.parse(`${by("from").value}T00:00:00Z`) / 1000 : -Infinity;
    const to = by("to").value ? Date.parse(`${by("to").value}T00:00:00Z`) / 1000 + DAY : Infinity;
    drawn = aligned(loaded.map((row) => row.filter((point) => point.at >= from && point.at < to)));
    const relative = by("axis").value === "rel" && baseOf(series) !== null;
    if (plot) plot.destroy();
    plot = seriesChart.draw(by("chart"), rows, drawn, { relative, zoom: zoomed(), onZoom: zoom, pick });
    seriesTable.fill(series, drawn, { relative, left, pick, pickNone: () => choose({ picked: "" }), picked: (view().get("picked") || "").split(",") });
    const values = drawn[0].filter((point) => shown(point, relative) !== null).length;
    by("state").textContent = drawn[0].length
      ? `${name(series)}: ${values} ${values === 1 ? "night" : "nights"} with a value, ${drawn[0].length - values} without.`
      : `${name(series)}: no night in this range.`;
    title(`${name(series)}, ${relative ? "relative" : "absolute"}${rows.length > 1 ? `, ${rows.length} boxes` : ""}`);
    document.documentElement.dataset.ready = series.id;
  };

  /** Says that the series in the address is unknown, and draws nothing in its place. @param {string} id */
  const unknown = (id) => {
    drawing += 1;
    if (plot) plot.destroy();
    plot = null;
    drawn = [];
    for (const place of ["chart", "rows", "changes", "picked", "chart-key", "left-out"]) by(place).replaceChildren();
    by("left-out").hidden = true;
    by("chart").setAttribute("aria-label", "No chart: the series is unknown");
    by("state").textContent = `This site has no series ${id}: its history does not have it, or the address was cut. Choose a series above.`;
    title(`Unknown series ${id}`);
    document.documentElement.dataset.ready = "unknown";
  };

  /** Puts the nights of other boxes at the time of the first box's night of that day, so that all of them are
   * read at once, and lines of ten boxes have a thousand places instead of ten thousand.
   * @param {Point[][]} rows @returns {Point[][]} */
  const aligned = ([first, ...others]) => {
    const times = new Map(first.map((point) => [Math.floor(point.at / DAY), point.at]));
    return [first, ...others.map((row) => row.map((point, at) => {
      const day = Math.floor(point.at / DAY);
      const isOnly = at === 0 || Math.floor(row[at - 1].at / DAY) !== day;
      return isOnly ? { ...point, at: times.get(day) ?? point.at } : point;
    }))];
  };

  /** Fills the lists with what exists beside what is chosen before. */
  const fill = () => {
    const texts = {
      place: list().places.map((/** @type {string[]} */ place) => place.slice(0, 3).join(", ")),
      branch: list().branches,
      step: list().steps.map((/** @type {string[]} */ step) => step[0]),
      metric: list().metrics.map((/** @type {string[]} */ metric) => `${metric[1]}, ${metric[2]}`),
    };
    let rest = all;
    for (const id of ids) {
      const field = /** @type {keyof Series} */ (id);
      const select = by(id);
      const values = chosen || id === "place" ? [...new Set(rest.map((series) => series[field]))] : [];
      const options = values.map((value) => {
        const text = texts[/** @type {keyof typeof texts} */ (id)][/** @type {number} */ (value)];
        return new Option(text, String(value), false, chosen !== null && value === chosen[field]);
      });
      select.replaceChildren(...(chosen ? [] : [new Option("–", "", false, true)]), ...options);
      select.disabled = !chosen && id !== "place";
      select.title = select.selectedOptions[0]?.text || "";
      if (chosen) rest = rest.filter((series) => series[field] === /** @type {Series} */ (chosen)[field]);
    }
  };

  /** Another series: that of the lists, or of those that exist the one that has most in common with it.
   * @param {string} changed the list that was changed */
  const another = (changed) => {
    const wanted = Object.fromEntries(ids.filter((id) => by(id).value).map((id) => [id, Number(by(id).value)]));
    const fits = (/** @type {string[]} */ names) => all.find((series) =>
      names.every((id) => !(id in wanted) || series[/** @type {keyof Series} */ (id)] === wanted[id]));
    const upTo = ids.slice(0, ids.indexOf(changed) + 1);
    const found = fits(ids) || fits([...upTo, "step", "metric"]) || fits([...upTo, "metric"]) || fits(upTo);
    if (found) choose({ s: found.id, picked: "" });
  };

  /** The series of an address without one: of the metric that it names, or one of the latest change, of the metric
   * by which its nights are judged if that changed. @param {string | undefined} metric @returns {Series | null} */
  const usual = (metric) => {
    const asked = list().metrics.findIndex((/** @type {any[]} */ row) => row[0] === metric);
    const isWanted = (/** @type {Series} */ { metric: of, place }) => (asked < 0 ? list().metrics[of][0] === list().places[place][6] : of === asked);
    const first = (/** @type {Series} */ series) => isWanted(series) && baseOf(series) !== null;
    const changed = list().changes.length ? list().changes[list().changes.length - 1][3].map((/** @type {any[]} */ member) => member[0]) : [];
    return (asked < 0 ? null : all.find(first)) || all.find((series) => changed.includes(series.id) && first(series))
      || all.find((series) => changed.includes(series.id)) || all.find(first) || all[0] || null;
  };

  /** Shows the view that the address has. */
  const show = () => {
    const found = view();
    const id = found.get("s");
    if (!id) {
      const first = usual(found.get("metric"));
      if (first) choose({ s: first.id, metric: "" }, true);
      return;
    }
    chosen = all.find((series) => series.id === id) || null;
    by("from").value = found.get("from") || "";
    by("to").value = found.get("to") || "";
    by("axis").value = found.get("y") === "abs" ? "abs" : DEFAULTS.y;
    by("boxes").value = found.get("boxes") === "all" ? "all" : DEFAULTS.boxes;
    fill();
    if (chosen) draw();
    else unknown(id);
  };

  const start = () => {
    if (!list() || !by("controls")) return;
    all = list().series.map((/** @type {any[]} */ row) => ({ place: row[0], branch: row[1], step: row[2], metric: row[3], id: row[4] }));
    for (const id of ids) by(id).addEventListener("change", () => another(id));
    for (const id of ["from", "to"]) by(id).addEventListener("change", () => choose({ [id]: by(id).value }));
    by("axis").addEventListener("change", () => choose({ y: by("axis").value === DEFAULTS.y ? "" : by("axis").value }));
    by("boxes").addEventListener("change", () => choose({ boxes: by("boxes").value === DEFAULTS.boxes ? "" : by("boxes").value }));
    addEventListener("hashchange", show);
    addEventListener("beforeprint", () => seriesTable.showAll());
    addEventListener("resize", () => { if (plot) seriesChart.fit(plot, by("chart")); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (chosen) draw(); });
    by("chart").addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (plot && chosen && seriesKeys.pressed(event, plot, by("chart"))) event.preventDefault();
    });
    show();
  };
  document.addEventListener("DOMContentLoaded", start);
}
