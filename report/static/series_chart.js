"use strict";
// The chart of series over nights: lines by uPlot; nights, intervals, changes and what cannot be seen by ourselves.

const seriesChart = (() => {
  const { amount, changesOf, isHollow, moment, percent, shown, visible } = seriesValues;
  const MIN_RANGE = 0.05;
  const SMALL_DOTS = 400; // from so many nights on, dots are small squares, which are drawn twice as fast
  const HEIGHT = 380;
  const MARGIN = 16;
  const LINES = ["--contender", "--worse", "--better", "--open-ink", "--trace", "--brand"];

  /** @type {Map<string, string>} */ const colors = new Map(); // of this drawing: looking one up takes long
  /** @param {string} name @returns {string} */
  const color = (name) => {
    const known = colors.get(name) ?? getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    colors.set(name, known);
    return known;
  };

  const list = () => tidemark.list;

  /** Draws series into `place`, and returns the chart; null without a night.
   * @param {HTMLElement} place @param {Series[]} rows @param {Point[][]} drawn their nights, row by row
   * @param {boolean} relative @param {(point: Point) => void} pick called with the night that is clicked @returns {any} */
  const draw = (place, rows, drawn, relative, pick) => {
    colors.clear();
    const times = [...new Set(drawn.flat().map((point) => point.at))].sort((a, b) => a - b);
    const where = new Map(times.map((at, position) => [at, position]));
    const data = [times, ...drawn.map((row, number) => {
      /** @type {(number | null)[]} */ const values = new Array(times.length).fill(null);
      for (const point of row) values[/** @type {number} */ (where.get(point.at))] = shown(point, relative);
      return values;
    })];
    place.replaceChildren();
    if (!times.length) return null;
    const sees = visible(rows[0]);
    const margin = Math.max((times[times.length - 1] - times[0]) * 0.012, 12 * 3600);
    const [bottom, top] = ends(drawn);
    const ink = color("--soft");
    const axis = { stroke: ink, grid: { stroke: color("--rule"), width: 1 }, ticks: { stroke: color("--rule") }, font: "12px system-ui, sans-serif" };
    const unit = list().metrics[rows[0].metric][2];
    const marks = changesOf(rows[0]);
    const plot = new uPlot({
      width: Math.max(260, place.clientWidth - MARGIN),
      height: HEIGHT,
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
        ...rows.map((series, number) => ({
          label: number ? list().places[series.place][0] : `${list().branches[series.branch]}, ${list().places[series.place][0]}`,
          stroke: color(LINES[number % LINES.length]),
          width: 1,
          points: { show: false }, // `nights` draws them, filled or hollow
          value: (/** @type {any} */ _, /** @type {number} */ value) => (value === null || value === undefined ? "–" : relative ? percent(value) : `${amount(value)} ${unit}`),
        })),
      ],
      hooks: { drawClear: [(/** @type {any} */ self) => under(self, relative, sees, list().metrics[rows[0].metric][4])], draw: [(/** @type {any} */ self) => { over(self, marks); nights(self, rows, drawn, relative); }] },
    }, data, place);
    const upper = /** @type {HTMLElement} */ (place.querySelector(".u-over"));
    upper.addEventListener("click", () => {
      const at = plot.cursor.idx;
      const point = at === null || at === undefined ? null : drawn[0].find((night) => night.at === times[at]);
      if (point) pick(point);
    });
    return plot;
  };

  /** How far intervals reach, but not further than makes the nights themselves flat.
   * @param {Point[][]} drawn @returns {[number, number]} */
  const ends = (drawn) => {
    const known = drawn.flat().filter((point) => point.interval && point.interval.low !== null && point.interval.high !== null);
    const low = Math.min(1, ...known.map((point) => /** @type {number} */ (/** @type {Interval} */ (point.interval).low)));
    const high = Math.max(1, ...known.map((point) => /** @type {number} */ (/** @type {Interval} */ (point.interval).high)));
    return [Math.max(low * 0.99, 0.7), Math.min(high * 1.01, 1.4)];
  };

  /** @param {number} low @param {number} high */
  const splits = (low, high) => {
    const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5].find((width) => (high - low) / width <= 8) || 10;
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
   * @param {any} self @param {Series[]} rows @param {Point[][]} drawn @param {boolean} relative */
  const nights = (self, rows, drawn, relative) => {
    const { ctx, bbox } = self;
    const ratio = devicePixelRatio;
    const areSmall = self.data[0].length > SMALL_DOTS;
    const radius = (areSmall ? 1.7 : 2.6) * ratio;
    const sheet = color("--sheet");
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    rows.forEach((series, number) => {
      const sees = visible(series);
      ctx.strokeStyle = color(LINES[number % LINES.length]);
      ctx.lineWidth = 1.2 * ratio;
      for (const hollow of [false, true]) {
        const bars = new Path2D();
        const circles = new Path2D();
        for (const point of drawn[number]) {
          const value = shown(point, relative);
          if (value === null || isHollow(series, point, sees) !== hollow) continue;
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

  /** Fits a chart to the width of its place. @param {any} plot @param {HTMLElement} place */
  const fit = (plot, place) => plot.setSize({ width: Math.max(260, place.clientWidth - MARGIN), height: HEIGHT });

  return { draw, fit };
})();
