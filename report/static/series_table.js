"use strict";
// What stands around the chart of a series: its nights as a table, its changes, its key, and nights that were picked.

const seriesTable = (() => {
  const { amount, baseOf, changesOf, day, moment, name, percent, shown, visible } = seriesValues;
  const FIRST_ROWS = 40;

  /** @typedef {{relative: boolean, left: string[], picked: string[], pick: (point: Point) => void, pickNone: () => void}} Shown */

  /** @param {string} id @returns {any} */
  const by = (id) => document.getElementById(id);
  /** @param {string} uid */
  const session = (uid) => `sessions/${uid}.html`;
  const list = () => tidemark.list;
  /** @type {() => void} */ let showOlder = () => {};

  /** @param {Interval | null} interval */
  const bounds = (interval) => (interval === null || interval.low === null || interval.high === null ? "–"
    : `${percent(interval.low).replace(" %", "")} to ${percent(interval.high)}`);

  /** @param {Point} point @param {any} mark */
  const happened = (point, mark) => [
    ...(mark ? [tidemark.element("a", { href: mark.path }, `change ${percent(mark.ratio)}`), " "] : []),
    [point.gap, point.dropped ? `${point.dropped} dropped round${point.dropped > 1 ? "s" : ""}` : "", point.interval && point.interval.open ? "undecided" : ""].filter(Boolean).join(", "),
  ];

  /** @param {Series} series @param {Point[]} nights @param {Shown} view */
  const table = (series, nights, { relative, picked, pick }) => {
    const unit = list().metrics[series.metric][2];
    const el = tidemark.element;
    const marks = new Map(changesOf(series).map((/** @type {any} */ change) => [change.to, change]));
    const body = el("tbody", {});
    /** @param {Point} point */
    const row = (point) => {
      const ratio = shown(point, true);
      const shownValue = shown(point, relative);
      const compare = el("button", { type: "button", class: "pick", "aria-label": `pick the night of ${moment(point.at)}`, "aria-pressed": String(picked.includes(point.uid)) }, "pick");
      compare.addEventListener("click", () => pick(point));
      return el("tr", shownValue === null ? {} : { "data-y": shownValue.toPrecision(6) },
        el("th", { scope: "row" }, el("a", { href: session(point.uid) }, moment(point.at))),
        el("td", {}, point.version),
        el("td", { class: "n" }, point.value === null ? "–" : amount(point.value)),
        el("td", { class: "n" }, point.base === null ? "–" : amount(point.base)),
        el("td", { class: "n" }, ratio === null ? "–" : percent(ratio)),
        el("td", { class: "n" }, bounds(point.interval)),
        el("td", {}, ...happened(point, marks.get(point.at))),
        el("td", {}, compare));
    };
    const latestFirst = [...nights].reverse();
    body.append(...latestFirst.slice(0, FIRST_ROWS).map(row));
    // Layout of thousands of cells takes longer than all else: older nights are shown when they are asked for.
    const older = el("button", { type: "button", class: "older" }, `Show the ${latestFirst.length - FIRST_ROWS} older nights`);
    showOlder = () => {
      body.append(...latestFirst.slice(FIRST_ROWS).map(row));
      older.remove();
      showOlder = () => {};
    };
    older.addEventListener("click", () => showOlder());
    if (latestFirst.length <= FIRST_ROWS) showOlder();
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

  /** @param {Series} series @param {Point[][]} drawn @param {boolean} relative */
  const key = (series, drawn, relative) => {
    const sees = visible(series);
    const threshold = list().metrics[series.metric][4];
    by("chart-key").textContent = (relative ? `Relative to ${baseOf(series)} in the same night, on a logarithmic axis. ` : "Absolute, from zero. ")
      + (sees === null ? "Hatched: what this step can see was never measured here. " : sees > threshold ? `Hatched: changes below ${(100 * sees).toFixed(1)} % cannot be seen by this step. ` : `This step can see every change beyond ${Number((100 * threshold).toFixed(2))} %, the threshold. `)
      + "Hollow: an undecided night, one with dropped rounds, or one whose change the step cannot see. "
      + (relative && drawn[0].some((point) => point.interval) ? `Bars: the interval of a session${drawn.length > 1 ? " of the first box" : ""}, while it has its rounds; a bar that leaves the chart ends in an arrow. ` : "")
      + (drawn.length > 1 ? "Each box has a dash of its own, and its name at the end of its line. " : "")
      + "Drag to zoom, double-click to see all again. With the keyboard: arrows read the nights, Enter picks, + and − zoom, 0 shows all. "
      + "Two picked nights can be compared.";
  };

  /** Says which boxes are not drawn, and why. @param {string[]} left */
  const leftOut = (left) => {
    by("left-out").textContent = left.length ? `Left out, because only the same suite, configuration, base and metric share an axis: ${left.join("; ")}.` : "";
    by("left-out").hidden = !left.length;
  };

  /** @param {Series} series @param {Point[]} nights those that were picked, in that order @param {() => void} pickNone */
  const picked = (series, nights, pickNone) => {
    const el = tidemark.element;
    const [step] = list().steps[series.step];
    const parts = nights.map((point) => el("li", {}, el("a", { href: session(point.uid) }, moment(point.at)), ` ${point.version}${point.value === null ? "" : `: ${amount(point.value)}`}`));
    const lines = nights.length ? [el("h2", {}, "Picked nights"), el("ul", { class: "inline" }, ...parts)] : [];
    if (nights.length === 2) {
      const [a, b] = nights;
      const [before, after] = nights.map((point) => shown(point, true));
      if (before && after) lines.push(el("p", {}, `The second is ${percent(after / before)} against the first: the quotient of two ratios to the base, without an interval.`));
      if (a.version !== b.version) lines.push(el("pre", { tabindex: "0", role: "group", "aria-label": "To measure both" }, `./tidemark run --step ${step} --until-decided ${a.version} ${b.version}`));
    }
    if (nights.length) {
      const none = el("button", { type: "button" }, "Pick none");
      none.addEventListener("click", pickNone);
      lines.push(none);
    }
    by("picked").replaceChildren(...lines);
  };

  /** @param {Series} series @param {Point[][]} drawn nights of the series, then those of others @param {Shown} view */
  const fill = (series, drawn, view) => {
    table(series, drawn[0], view);
    changes(series);
    key(series, drawn, view.relative);
    leftOut(view.left);
    picked(series, view.picked.flatMap((uid) => drawn[0].filter((point) => point.uid === uid)), view.pickNone);
  };

  return { fill, showAll: () => showOlder() };
})();
