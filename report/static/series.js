"use strict";
// The series explorer: chooses a series, loads its periods, draws it with uPlot and fills the table.
{
  const { day, moment, percent, amount, name, points, shown, visible, changesOf } = seriesValues;
  const DAY = 86400;
  const FIRST_ROWS = 40;
  const ids = ["place", "branch", "step", "metric"];

  /** @param {string} id @returns {any} */
  const by = (id) => document.getElementById(id);
  /** @param {string} uid */
  const session = (uid) => `sessions/${uid}.html`;
  /** @type {Series[]} */ let all = [];
  /** @type {Series | null} */ let chosen = null;
  /** @type {any} */ let plot = null;
  /** @type {Point[][]} */ let drawn = [];
  /** @type {{series: Series, point: Point}[]} */ let picked = [];
  /** @type {() => void} */ let showAll = () => {};

  const list = () => tidemark.list;

  const write = () => {
    if (!chosen) return;
    const parts = [`s=${chosen.id}`];
    for (const id of ["from", "to"]) if (by(id).value) parts.push(`${id}=${by(id).value}`);
    if (by("axis").value !== "rel") parts.push(`y=${by("axis").value}`);
    if (by("boxes").value !== "one") parts.push(`boxes=${by("boxes").value}`);
    history.replaceState(null, "", `#${parts.join("&")}`);
  };

  /** The series of the same branch, step and metric on other boxes. @param {Series} series */
  const others = (series) => by("boxes").value === "all"
    ? all.filter((other) => other.branch === series.branch && other.step === series.step && other.metric === series.metric && other !== series)
    : [];

  const draw = async () => {
    if (!chosen) return;
    const series = chosen;
    write();
    const rows = [series, ...others(series)];
    by("state").textContent = `Loading ${name(series)}.`;
    const loaded = await Promise.all(rows.map(points));
    if (series !== chosen) return;
    const from = by("from").value ? Date.parse(`${by("from").value}T00:00:00Z`) / 1000 : -Infinity;
    const to = by("to").value ? Date.parse(`${by("to").value}T00:00:00Z`) / 1000 + 86400 : Infinity;
    drawn = aligned(loaded.map((row) => row.filter((point) => point.at >= from && point.at < to)));
    const relative = by("axis").value === "rel" && list().branches[series.branch] !== list().places[series.place][3];
    if (plot) plot.destroy();
    plot = seriesChart.draw(by("chart"), rows, drawn, relative, (point) => pick(series, point));
    table(series, relative);
    changes(series);
    key(series, relative);
    const values = drawn[0].filter((point) => shown(point, relative) !== null).length;
    by("state").textContent = drawn[0].length
      ? `${name(series)}: ${values} nights with a value, ${drawn[0].length - values} without.`
      : `${name(series)}: no night in this range.`;
    document.documentElement.dataset.ready = series.id;
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

  /** @param {Interval | null} interval */
  const bounds = (interval) => (interval === null || interval.low === null || interval.high === null ? "–"
    : `${percent(interval.low).replace(" %", "")} to ${percent(interval.high)}`);

  /** @param {Point} point @param {any} mark */
  const happened = (point, mark) => [
    ...(mark ? [tidemark.element("a", { href: mark.path }, `change ${percent(mark.ratio)}`), " "] : []),
    [point.gap, point.dropped ? `${point.dropped} dropped round${point.dropped > 1 ? "s" : ""}` : "", point.interval && point.interval.open ? "undecided" : ""].filter(Boolean).join(", "),
  ];

  /** @param {Series} series @param {boolean} relative */
  const table = (series, relative) => {
    const unit = list().metrics[series.metric][2];
    const el = tidemark.element;
    const marks = new Map(changesOf(series).map((/** @type {any} */ change) => [change.to, change]));
    const body = el("tbody", {});
    /** @param {Point} point */
    const row = (point) => {
      const ratio = shown(point, true);
      const mark = marks.get(point.at);
      const shownValue = shown(point, relative);
      const compare = el("button", { type: "button", class: "pick" }, "pick");
      compare.addEventListener("click", () => pick(series, point));
      return el("tr", shownValue === null ? {} : { "data-y": shownValue.toPrecision(6) },
        el("th", { scope: "row" }, el("a", { href: session(point.uid) }, moment(point.at))),
        el("td", {}, point.version),
        el("td", { class: "n" }, point.value === null ? "–" : amount(point.value)),
        el("td", { class: "n" }, point.base === null ? "–" : amount(point.base)),
        el("td", { class: "n" }, ratio === null ? "–" : percent(ratio)),
        el("td", { class: "n" }, bounds(point.interval)),
        el("td", {}, ...happened(point, mark)),
        el("td", {}, compare));
    };
    const latestFirst = [...drawn[0]].reverse();
    body.append(...latestFirst.slice(0, FIRST_ROWS).map(row));
    // Layout of thousands of cells takes longer than all else: older nights are shown when they are asked for.
    const older = el("button", { type: "button", class: "older" }, `Show the ${latestFirst.length - FIRST_ROWS} older nights`);
    showAll = () => {
      body.append(...latestFirst.slice(FIRST_ROWS).map(row));
      older.remove();
      showAll = () => {};
    };
    older.addEventListener("click", () => showAll());
    if (latestFirst.length <= FIRST_ROWS) showAll();
    const heads = ["night", "version", `value, ${unit}`, `base, ${unit}`, "relative", "interval", "what happened", "compare"];
    by("rows").replaceChildren(el("table", {},
      el("caption", {}, `${name(series)}, latest night first`),
      el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", { scope: "col" }, head)))), body), ...(latestFirst.length > FIRST_ROWS ? [older] : []));
  };

  /** @param {Series} series */
  const changes = (series) => {
    const el = tidemark.element;
    const found = changesOf(series);
    by("changes").replaceChildren(...(found.length ? [el("h2", {}, "Changes of this series"), el("ul", {}, ...found.map((/** @type {any} */ change) =>
      el("li", {}, el("a", { href: change.path }, `${percent(change.ratio)} between ${day(change.from)} and ${day(change.to)}${change.confirmed ? ", confirmed" : ""}`))))] : []));
  };

  /** @param {Series} series @param {boolean} relative */
  const key = (series, relative) => {
    const sees = visible(series);
    const threshold = list().metrics[series.metric][4];
    by("chart-key").textContent = (relative ? `Relative to ${list().places[series.place][3]} in the same night, on a logarithmic axis. ` : "Absolute, from zero. ")
      + (sees === null ? "Hatched: what this step can see was never measured here. " : sees > threshold ? `Hatched: changes below ${(100 * sees).toFixed(1)} % cannot be seen by this step. ` : `This step can see every change beyond ${Number((100 * threshold).toFixed(2))} %, the threshold. `)
      + "Hollow: an undecided night, one with dropped rounds, or one whose change the step cannot see. "
      + (relative && drawn[0].some((point) => point.interval) ? "Bars: the interval of a session, while it has its rounds. " : "")
      + "A point that is clicked is picked; two picked nights can be compared.";
  };

  /** @param {Series} series @param {Point} point */
  const pick = (series, point) => {
    picked = [...picked, { series, point }].slice(-2);
    const el = tidemark.element;
    const parts = picked.map(({ point: it }) => el("li", {}, el("a", { href: session(it.uid) }, moment(it.at)), ` ${it.version}${it.value === null ? "" : `: ${amount(it.value)}`}`));
    const lines = [el("h2", {}, "Picked nights"), el("ul", {}, ...parts)];
    if (picked.length === 2) {
      const [a, b] = picked;
      const both = [shown(a.point, true), shown(b.point, true)];
      if (both[0] && both[1]) lines.push(el("p", {}, `The second is ${percent(both[1] / both[0])} against the first, each relative to its base.`));
      if (a.point.version !== b.point.version) lines.push(el("pre", { tabindex: "0", role: "group", "aria-label": "To measure both" }, `./tidemark run --step ${list().steps[a.series.step][0]} --until-decided ${a.point.version} ${b.point.version}`));
      lines.push(el("p", {}, el("a", { href: `profiles.html#step=${encodeURIComponent(list().steps[a.series.step][0])}&before=${encodeURIComponent(a.point.uid)}&after=${encodeURIComponent(b.point.uid)}` }, "Subtract their CPU profiles")));
    }
    by("picked").replaceChildren(...lines);
  };

  /** Fills the lists with what exists beside what is chosen before. */
  const fill = () => {
    if (!chosen) return;
    const texts = {
      place: list().places.map((/** @type {string[]} */ place) => place.slice(0, 3).join(", ")),
      branch: list().branches,
      step: list().steps.map((/** @type {string[]} */ step) => step[0]),
      metric: list().metrics.map((/** @type {string[]} */ metric) => `${metric[1]}, ${metric[2]}`),
    };
    let rest = all;
    for (const id of ids) {
      const field = /** @type {keyof Series} */ (id);
      const values = [...new Set(rest.map((series) => series[field]))];
      const select = by(id);
      select.replaceChildren(...values.map((value) => new Option(texts[/** @type {keyof typeof texts} */ (id)][/** @type {number} */ (value)], String(value), false, value === /** @type {Series} */ (chosen)[field])));
      rest = rest.filter((series) => series[field] === /** @type {Series} */ (chosen)[field]);
    }
  };

  /** @param {string} changed the list that was changed */
  const choose = (changed) => {
    const wanted = Object.fromEntries(ids.map((id) => [id, Number(by(id).value)]));
    const fits = (/** @type {Series} */ series, /** @type {string[]} */ names) => names.every((id) => series[/** @type {keyof Series} */ (id)] === wanted[id]);
    const upTo = ids.slice(0, ids.indexOf(changed) + 1);
    chosen = all.find((series) => fits(series, ids)) || all.find((series) => fits(series, [...upTo, "step", "metric"])) || all.find((series) => fits(series, [...upTo, "metric"])) || all.find((series) => fits(series, upTo)) || chosen;
    picked = [];
    by("picked").replaceChildren();
    fill();
    draw();
  };

  const start = () => {
    if (!list() || !by("controls")) return;
    all = list().series.map((/** @type {any[]} */ row) => ({ place: row[0], branch: row[1], step: row[2], metric: row[3], id: row[4] }));
    const view = tidemark.view(location.hash);
    const asked = list().metrics.findIndex((/** @type {any[]} */ metric) => metric[0] === view.get("metric"));
    const wanted = asked < 0 ? Math.min(...all.map((series) => series.metric)) : asked;
    const first = (/** @type {Series} */ series) => series.metric === wanted && list().branches[series.branch] !== list().places[series.place][3];
    // Without a series in the address: one of the latest change, its throughput if that changed.
    const changed = list().changes.length ? list().changes[list().changes.length - 1][3].map((/** @type {any[]} */ member) => member[0]) : [];
    chosen = all.find((series) => series.id === view.get("s")) || (asked < 0 ? null : all.find(first)) || all.find((series) => changed.includes(series.id) && first(series))
      || all.find((series) => changed.includes(series.id)) || all.find(first) || all[0] || null;
    by("from").value = view.get("from") || "";
    by("to").value = view.get("to") || "";
    by("axis").value = view.get("y") === "abs" ? "abs" : "rel";
    by("boxes").value = view.get("boxes") === "all" ? "all" : "one";
    fill();
    for (const id of ids) by(id).addEventListener("change", () => choose(id));
    for (const id of ["axis", "boxes", "from", "to"]) by(id).addEventListener("change", draw);
    addEventListener("beforeprint", () => showAll());
    addEventListener("resize", () => { if (plot) seriesChart.fit(plot, by("chart")); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    draw();
  };
  document.addEventListener("DOMContentLoaded", start);
  addEventListener("hashchange", () => {
    const wanted = tidemark.view(location.hash).get("s");
    const found = all.find((series) => series.id === wanted);
    if (found && found !== chosen) { chosen = found; fill(); draw(); }
  });
}
