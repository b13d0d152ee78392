"use strict";
// The series explorer: chooses a series, loads its periods, draws it with uPlot and fills the table.
{
  /** @typedef {{id: string, place: number, branch: number, step: number, metric: number}} Series */
  /** @typedef {{low: number | null, high: number | null, open: boolean}} Interval */
  /** @typedef {{at: number, uid: string, version: string, value: number | null, base: number | null, gap: string, interval: Interval | null, dropped: number}} Point */

  const MINUTE = 60;
  const DAY = 86400;
  const MIN_RANGE = 0.05;
  const FIRST_ROWS = 40;
  const SMALL_DOTS = 400; // from so many nights on, dots are small squares, which are drawn twice as fast
  const ids = ["place", "branch", "step", "metric"];

  /** @param {string} id @returns {any} */
  const by = (id) => document.getElementById(id);
  /** @param {number} seconds */
  const day = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10);
  /** @param {number} seconds */
  const moment = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ") + " UTC";
  /** @param {number} ratio */
  const percent = (ratio) => `${ratio >= 1 ? "+" : "−"}${Math.abs(100 * (ratio - 1)).toFixed(1)} %`;
  /** @param {number} value */
  const amount = (value) => (Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en").replaceAll(",", "\u202f") : String(Number(value.toPrecision(4))));
  /** @param {string} uid */
  const session = (uid) => `sessions/${uid}.html`;
  /** @type {Map<string, string>} */ const colors = new Map(); // of this drawing: looking one up takes long
  /** @param {string} name @returns {string} */
  const color = (name) => {
    const known = colors.get(name) ?? getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    colors.set(name, known);
    return known;
  };

  /** @type {Series[]} */ let all = [];
  /** @type {Series | null} */ let chosen = null;
  /** @type {any} */ let plot = null;
  /** @type {Point[][]} */ let drawn = [];
  /** @type {{series: Series, point: Point}[]} */ let picked = [];
  /** @type {() => void} */ let showAll = () => {};

  const list = () => tidemark.list;

  /** @param {Series} one */
  const name = (one) => `${list().steps[one.step][0]} ${list().metrics[one.metric][1]}, ${list().branches[one.branch]} on ${list().places[one.place][0]}`;

  /** @param {any[][]} rows rows that begin with the number of a night @returns {Map<number, any[]>} */
  const byNight = (rows) => new Map((rows || []).map((row) => [row[0], row]));

  /** @param {any[] | undefined} row night, low, high, whether the verdict is open @returns {Interval | null} */
  const known = (row) => (row ? { low: row[1], high: row[2], open: row[3] } : null);

  /** The digit of a character; three of the printable ones are none (series_data.py).
   * @param {number} code */
  const digit = (code) => code - 33 - Number(code > 34) - Number(code > 60) - Number(code > 92);
  const DIGITS = 91;

  /** @param {[number, number, string]} row lowest value, size of a step, two characters for each night
   * @returns {(number | null)[]} */
  const unpacked = ([low, step, text]) => Array.from({ length: text.length / 2 }, (_, night) => (text[2 * night] === " " ? null
    : low + step * (digit(text.charCodeAt(2 * night)) * DIGITS + digit(text.charCodeAt(2 * night + 1)))));

  /** @type {Map<string, Promise<boolean>>} */ const files = new Map();

  /** Loads a file once. @param {string} path */
  const once = (path) => {
    const loading = files.get(path) || tidemark.load(path);
    files.set(path, loading);
    return loading;
  };

  /** Loads the values of a series; missing files are periods without a value.
   * @param {Series} one @returns {Promise<Point[]>} */
  const points = async (one) => {
    const place = list().places[one.place];
    const [, , , base, named, folder] = place;
    const file = list().steps[one.step][1];
    const branch = list().branches[one.branch];
    const metric = list().metrics[one.metric][0];
    /** @type {Point[]} */ const found = [];
    await Promise.all(named.map((/** @type {[string, string[]]} */ [name]) => once(`${folder}/${file}/${name}.js`)));
    for (const period of named.flatMap((/** @type {[string, string[]]} */ [, periods]) => periods)) {
      const shard = tidemark.shards.get(`${folder}/${file}/${period}`);
      if (!shard) continue;
      /** @param {string} whose */
      const row = (whose) => unpacked((shard.v[whose] || {})[metric] || [0, 0, ""]);
      const values = row(branch);
      const bases = row(base);
      const versions = shard.w[branch] || [];
      const gaps = new Map(shard.g.filter((/** @type {any[]} */ gap) => gap[1] === branch || gap[1] === base)
        .map((/** @type {any[]} */ gap) => [gap[0], gap[2]]));
      const intervals = byNight((shard.i[metric] || {})[branch]);
      const dropped = byNight(shard.d);
      let at = 0;
      shard.n.forEach((/** @type {number} */ minutes, /** @type {number} */ night) => {
        while (at + 1 < versions.length && versions[at + 1][0] <= night) at += 1;
        if (!versions.length || versions[at][1] === null) return;
        const value = values[night] ?? null;
        const below = bases[night] ?? null;
        found.push({
          at: minutes * MINUTE,
          uid: shard.u[night],
          version: versions[at][1],
          value,
          base: below,
          interval: known(intervals.get(night)),
          dropped: (dropped.get(night) || [0, 0])[1],
          gap: gaps.get(night) || (value === null ? "not recorded" : below === null ? "no value of the base" : ""),
        });
      });
    }
    return found;
  };

  /** @param {Series} one @param {Point} point @param {boolean} relative */
  const shown = (one, point, relative) => {
    if (point.value === null) return null;
    if (!relative) return point.value;
    return point.base !== null && point.base > 0 && point.value > 0 ? point.value / point.base : null;
  };

  /** @param {Series} one @returns {number | null} */
  const visible = (one) => {
    const [box, suite, configuration] = list().places[one.place];
    if (list().metrics[one.metric][5]) return list().metrics[one.metric][4]; // what is counted
    const row = list().sees.find((/** @type {any[]} */ sees) => sees[0] === box && sees[1] === suite && sees[2] === configuration
      && sees[3] === list().branches[one.branch] && sees[4] === list().steps[one.step][0] && sees[5] === list().metrics[one.metric][0]);
    return row ? row[6] : null;
  };

  /** Whether a night shows nothing for certain: its verdict is open, rounds were dropped, or its step is blind.
   * @param {Series} one @param {Point} point @param {number | null} sees */
  const isHollow = (one, point, sees) => {
    if (point.dropped || (point.interval && point.interval.open)) return true;
    if (point.interval || list().branches[one.branch] === list().places[one.place][3]) return false;
    const ratio = shown(one, point, true);
    return sees === null || (ratio !== null && sees > list().metrics[one.metric][4] && Math.abs(ratio - 1) < sees);
  };

  /** @param {Series} one */
  const changesOf = (one) => list().changes.flatMap((/** @type {any[]} */ change) =>
    change[3].filter((/** @type {any[]} */ member) => member[0] === one.id)
      .map((/** @type {any[]} */ member) => ({ name: change[0], path: change[1], direction: change[2], from: member[1] * MINUTE, to: member[2] * MINUTE, ratio: member[3], confirmed: member[4] })));

  const write = () => {
    if (!chosen) return;
    const parts = [`s=${chosen.id}`];
    for (const id of ["from", "to"]) if (by(id).value) parts.push(`${id}=${by(id).value}`);
    if (by("axis").value !== "rel") parts.push(`y=${by("axis").value}`);
    if (by("boxes").value !== "one") parts.push(`boxes=${by("boxes").value}`);
    history.replaceState(null, "", `#${parts.join("&")}`);
  };

  /** The series of the same branch, step and metric on other boxes. @param {Series} one */
  const others = (one) => by("boxes").value === "all"
    ? all.filter((other) => other.branch === one.branch && other.step === one.step && other.metric === one.metric && other !== one)
    : [];

  const colours = ["--contender", "--worse", "--better", "--open-ink", "--trace", "--brand"];

  const draw = async () => {
    if (!chosen) return;
    const one = chosen;
    write();
    const rows = [one, ...others(one)];
    by("state").textContent = `Loading ${name(one)}.`;
    const loaded = await Promise.all(rows.map(points));
    if (one !== chosen) return;
    const from = by("from").value ? Date.parse(`${by("from").value}T00:00:00Z`) / 1000 : -Infinity;
    const to = by("to").value ? Date.parse(`${by("to").value}T00:00:00Z`) / 1000 + 86400 : Infinity;
    drawn = aligned(loaded.map((row) => row.filter((point) => point.at >= from && point.at < to)));
    const relative = by("axis").value === "rel" && list().branches[one.branch] !== list().places[one.place][3];
    chart(rows, relative);
    table(one, relative);
    changes(one);
    key(one, relative);
    const values = drawn[0].filter((point) => shown(one, point, relative) !== null).length;
    by("state").textContent = drawn[0].length
      ? `${name(one)}: ${values} nights with a value, ${drawn[0].length - values} without.`
      : `${name(one)}: no night in this range.`;
    document.documentElement.dataset.ready = one.id;
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

  /** @param {Series[]} rows @param {boolean} relative */
  const chart = (rows, relative) => {
    colors.clear();
    const times = [...new Set(drawn.flat().map((point) => point.at))].sort((a, b) => a - b);
    const where = new Map(times.map((at, position) => [at, position]));
    const data = [times, ...drawn.map((row, number) => {
      /** @type {(number | null)[]} */ const values = new Array(times.length).fill(null);
      for (const point of row) values[/** @type {number} */ (where.get(point.at))] = shown(rows[number], point, relative);
      return values;
    })];
    if (plot) plot.destroy();
    plot = null;
    by("chart").replaceChildren();
    if (!times.length) return;
    const sees = visible(rows[0]);
    const margin = Math.max((times[times.length - 1] - times[0]) * 0.012, 12 * 3600);
    const [bottom, top] = ends();
    const ink = color("--soft");
    const axis = { stroke: ink, grid: { stroke: color("--rule"), width: 1 }, ticks: { stroke: color("--rule") }, font: "12px system-ui, sans-serif" };
    const unit = list().metrics[rows[0].metric][2];
    const marks = changesOf(rows[0]);
    plot = new uPlot({
      width: Math.max(260, by("chart").clientWidth - 16),
      height: 380,
      tzDate: (/** @type {number} */ at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      scales: {
        x: { time: true, range: (/** @type {any} */ _, /** @type {number} */ first, /** @type {number} */ last) => [first - margin, last + margin] },
        y: relative
          ? { distr: 3, log: 2, range: (/** @type {any} */ _, /** @type {number} */ low, /** @type {number} */ high) => [Math.min((low ?? 1) * 0.99, bottom, 1 - MIN_RANGE), Math.max((high ?? 1) * 1.01, top, 1 + MIN_RANGE)] }
          : { range: (/** @type {any} */ _, /** @type {number} */ _low, /** @type {number} */ high) => [0, (high || 1) * 1.06] },
      },
      axes: [
        { ...axis, values: [[86400 * 25, "{YYYY}-{MM}", null, null, null, null, null, null, 1], [3600, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1], [1, "{HH}:{mm}", "\n{YYYY}-{MM}-{DD}", null, null, null, null, null, 1]] },
        {
          ...axis,
          size: 70,
          splits: relative ? (/** @type {any} */ self) => splits(self.scales.y.min, self.scales.y.max) : undefined,
          filter: (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks,
          values: (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks.map((value) => (relative ? (Math.abs(value - 1) < 1e-9 ? "0 %" : percent(value).replace(".0 %", " %")) : amount(value))),
        },
      ],
      series: [
        { label: "night", value: (/** @type {any} */ _, /** @type {number} */ at) => (at ? moment(at) : "–") },
        ...rows.map((one, number) => ({
          label: number ? list().places[one.place][0] : `${list().branches[one.branch]}, ${list().places[one.place][0]}`,
          stroke: color(colours[number % colours.length]),
          width: 1,
          points: { show: false }, // `nights` draws them, filled or hollow
          value: (/** @type {any} */ _, /** @type {number} */ value) => (value === null || value === undefined ? "–" : relative ? percent(value) : `${amount(value)} ${unit}`),
        })),
      ],
      hooks: { drawClear: [(/** @type {any} */ self) => under(self, relative, sees, list().metrics[rows[0].metric][4])], draw: [(/** @type {any} */ self) => { over(self, marks); nights(self, rows, relative); }] },
    }, data, by("chart"));
    const upper = by("chart").querySelector(".u-over");
    upper.addEventListener("click", () => {
      const at = plot.cursor.idx;
      const point = at === null || at === undefined ? null : drawn[0].find((one) => one.at === times[at]);
      if (point) pick(rows[0], point);
    });
  };

  /** How far intervals reach, but not further than makes the nights themselves flat. @returns {[number, number]} */
  const ends = () => {
    const known = drawn.flat().filter((point) => point.interval && point.interval.low !== null && point.interval.high !== null);
    const low = Math.min(1, ...known.map((point) => /** @type {number} */ (/** @type {Interval} */ (point.interval).low)));
    const high = Math.max(1, ...known.map((point) => /** @type {number} */ (/** @type {Interval} */ (point.interval).high)));
    return [Math.max(low * 0.99, 0.7), Math.min(high * 1.01, 1.4)];
  };

  /** @param {number} low @param {number} high */
  const splits = (low, high) => {
    const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5].find((each) => (high - low) / each <= 8) || 10;
    const found = [];
    for (let n = Math.ceil((low - 1) / step); n <= Math.floor((high - 1) / step); n += 1) found.push(1 + step * n);
    return found;
  };

  /** The band of what the step cannot see. @param {any} self @param {boolean} relative @param {number | null} sees
   * @param {number} threshold */
  const under = (self, relative, sees, threshold) => {
    if (!relative) return;
    const { ctx, bbox } = self;
    const top = sees === null ? bbox.top : self.valToPos(1 + sees, "y", true);
    const bottom = sees === null ? bbox.top + bbox.height : self.valToPos(1 / (1 + sees), "y", true);
    if (sees !== null && sees <= threshold) return;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, Math.max(top, bbox.top), bbox.width, Math.min(bottom, bbox.top + bbox.height) - Math.max(top, bbox.top));
    ctx.clip();
    ctx.strokeStyle = color("--hatch");
    ctx.lineWidth = devicePixelRatio;
    const gap = 7 * devicePixelRatio;
    for (let x = bbox.left - bbox.height; x < bbox.left + bbox.width; x += gap) {
      ctx.beginPath();
      ctx.moveTo(x, bbox.top + bbox.height);
      ctx.lineTo(x + bbox.height, bbox.top);
      ctx.stroke();
    }
    ctx.restore();
  };

  /** The nights between which changes lie. @param {any} self @param {any[]} marks */
  const over = (self, marks) => {
    const { ctx, bbox } = self;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const mark of marks) {
      const left = self.valToPos(mark.from, "x", true);
      const width = Math.max(self.valToPos(mark.to, "x", true) - left, 3);
      const worse = mark.direction === "regression";
      ctx.fillStyle = color(worse ? "--range-worse" : mark.direction === "improvement" ? "--range-better" : "--range-shift");
      ctx.fillRect(left, bbox.top, width, bbox.height);
      ctx.strokeStyle = color(worse ? "--worse" : mark.direction === "improvement" ? "--better" : "--soft");
      ctx.setLineDash(mark.confirmed ? [] : [4, 4]);
      ctx.strokeRect(left, bbox.top, width, bbox.height);
    }
    ctx.restore();
  };

  /** The nights of each series, filled or hollow, with the interval of each session that still has its rounds.
   * @param {any} self @param {Series[]} rows @param {boolean} relative */
  const nights = (self, rows, relative) => {
    const { ctx, bbox } = self;
    const ratio = devicePixelRatio;
    const areSmall = self.data[0].length > SMALL_DOTS;
    const radius = (areSmall ? 1.7 : 2.6) * ratio;
    const sheet = color("--sheet");
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    rows.forEach((one, number) => {
      const sees = visible(one);
      ctx.strokeStyle = color(colours[number % colours.length]);
      ctx.lineWidth = 1.2 * ratio;
      for (const hollow of [false, true]) {
        const bars = new Path2D();
        const circles = new Path2D();
        for (const point of drawn[number]) {
          const value = shown(one, point, relative);
          if (value === null || isHollow(one, point, sees) !== hollow) continue;
          const x = self.valToPos(point.at, "x", true);
          const y = self.valToPos(value, "y", true);
          const { low, high } = (relative && point.interval) || { low: null, high: null };
          if (low !== null && high !== null) {
            bars.moveTo(x, self.valToPos(low, "y", true));
            bars.lineTo(x, self.valToPos(high, "y", true));
          }
          if (areSmall) circles.rect(x - radius, y - radius, 2 * radius, 2 * radius);
          else {
            circles.moveTo(x + radius, y);
            circles.arc(x, y, radius, 0, 2 * Math.PI);
          }
        }
        ctx.stroke(bars);
        ctx.fillStyle = hollow ? sheet : ctx.strokeStyle;
        ctx.fill(circles);
        ctx.stroke(circles);
      }
    });
    ctx.restore();
  };

  /** @param {Interval | null} interval */
  const bounds = (interval) => (interval === null || interval.low === null || interval.high === null ? "–"
    : `${percent(interval.low).replace(" %", "")} to ${percent(interval.high)}`);

  /** @param {Point} point @param {any} mark */
  const happened = (point, mark) => [
    ...(mark ? [tidemark.element("a", { href: mark.path }, `change ${percent(mark.ratio)}`), " "] : []),
    [point.gap, point.dropped ? `${point.dropped} dropped round${point.dropped > 1 ? "s" : ""}` : "", point.interval && point.interval.open ? "undecided" : ""].filter(Boolean).join(", "),
  ];

  /** @param {Series} one @param {boolean} relative */
  const table = (one, relative) => {
    const unit = list().metrics[one.metric][2];
    const el = tidemark.element;
    const marks = new Map(changesOf(one).map((/** @type {any} */ change) => [change.to, change]));
    const body = el("tbody", {});
    /** @param {Point} point */
    const row = (point) => {
      const ratio = shown(one, point, true);
      const mark = marks.get(point.at);
      const shownValue = shown(one, point, relative);
      const compare = el("button", { type: "button", class: "pick" }, "pick");
      compare.addEventListener("click", () => pick(one, point));
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
      el("caption", {}, `${name(one)}, latest night first`),
      el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", { scope: "col" }, head)))), body), ...(latestFirst.length > FIRST_ROWS ? [older] : []));
  };

  /** @param {Series} one */
  const changes = (one) => {
    const el = tidemark.element;
    const found = changesOf(one);
    by("changes").replaceChildren(...(found.length ? [el("h2", {}, "Changes of this series"), el("ul", {}, ...found.map((/** @type {any} */ change) =>
      el("li", {}, el("a", { href: change.path }, `${percent(change.ratio)} between ${day(change.from)} and ${day(change.to)}${change.confirmed ? ", confirmed" : ""}`))))] : []));
  };

  /** @param {Series} one @param {boolean} relative */
  const key = (one, relative) => {
    const sees = visible(one);
    const threshold = list().metrics[one.metric][4];
    by("chart-key").textContent = (relative ? `Relative to ${list().places[one.place][3]} in the same night, on a logarithmic axis. ` : "Absolute, from zero. ")
      + (sees === null ? "Hatched: what this step can see was never measured here. " : sees > threshold ? `Hatched: changes below ${(100 * sees).toFixed(1)} % cannot be seen by this step. ` : `This step can see every change beyond ${Number((100 * threshold).toFixed(2))} %, the threshold. `)
      + "Hollow: an undecided night, one with dropped rounds, or one whose change the step cannot see. "
      + (relative && drawn[0].some((point) => point.interval) ? "Bars: the interval of a session, while it has its rounds. " : "")
      + "A point that is clicked is picked; two picked nights can be compared.";
  };

  /** @param {Series} one @param {Point} point */
  const pick = (one, point) => {
    picked = [...picked, { series: one, point }].slice(-2);
    const el = tidemark.element;
    const parts = picked.map(({ point: it }) => el("li", {}, el("a", { href: session(it.uid) }, moment(it.at)), ` ${it.version}${it.value === null ? "" : `: ${amount(it.value)}`}`));
    const lines = [el("h2", {}, "Picked nights"), el("ul", {}, ...parts)];
    if (picked.length === 2) {
      const [a, b] = picked;
      const both = [shown(a.series, a.point, true), shown(b.series, b.point, true)];
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
      const values = [...new Set(rest.map((one) => one[field]))];
      const select = by(id);
      select.replaceChildren(...values.map((value) => new Option(texts[/** @type {keyof typeof texts} */ (id)][/** @type {number} */ (value)], String(value), false, value === /** @type {Series} */ (chosen)[field])));
      rest = rest.filter((one) => one[field] === /** @type {Series} */ (chosen)[field]);
    }
  };

  /** @param {string} changed the list that was changed */
  const choose = (changed) => {
    const wanted = Object.fromEntries(ids.map((id) => [id, Number(by(id).value)]));
    const fits = (/** @type {Series} */ one, /** @type {string[]} */ names) => names.every((id) => one[/** @type {keyof Series} */ (id)] === wanted[id]);
    const upTo = ids.slice(0, ids.indexOf(changed) + 1);
    chosen = all.find((one) => fits(one, ids)) || all.find((one) => fits(one, [...upTo, "step", "metric"])) || all.find((one) => fits(one, [...upTo, "metric"])) || all.find((one) => fits(one, upTo)) || chosen;
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
    const wanted = asked < 0 ? Math.min(...all.map((one) => one.metric)) : asked;
    const first = (/** @type {Series} */ one) => one.metric === wanted && list().branches[one.branch] !== list().places[one.place][3];
    // Without a series in the address: one of the latest change, its throughput if that changed.
    const changed = list().changes.length ? list().changes[list().changes.length - 1][3].map((/** @type {any[]} */ member) => member[0]) : [];
    chosen = all.find((one) => one.id === view.get("s")) || (asked < 0 ? null : all.find(first)) || all.find((one) => changed.includes(one.id) && first(one))
      || all.find((one) => changed.includes(one.id)) || all.find(first) || all[0] || null;
    by("from").value = view.get("from") || "";
    by("to").value = view.get("to") || "";
    by("axis").value = view.get("y") === "abs" ? "abs" : "rel";
    by("boxes").value = view.get("boxes") === "all" ? "all" : "one";
    fill();
    for (const id of ids) by(id).addEventListener("change", () => choose(id));
    for (const id of ["axis", "boxes", "from", "to"]) by(id).addEventListener("change", draw);
    addEventListener("beforeprint", () => showAll());
    addEventListener("resize", () => { if (plot) plot.setSize({ width: Math.max(260, by("chart").clientWidth - 16), height: 380 }); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    draw();
  };
  document.addEventListener("DOMContentLoaded", start);
  addEventListener("hashchange", () => {
    const wanted = tidemark.view(location.hash).get("s");
    const found = all.find((one) => one.id === wanted);
    if (found && found !== chosen) { chosen = found; fill(); draw(); }
  });
}
