"use strict";
// The chart of series over nights: lines by uPlot; nights, intervals, changes and what cannot be seen by ourselves.

const seriesChart = (() => {
  const { amount, changesOf, cut, isHollow, moment, percent, shown, visible } = seriesValues;
  const DAY = 86400;
  const MIN_RANGE = 0.05;
  const SMALL_DOTS = 400; // from so many nights on, dots are small squares, which are drawn twice as fast
  const HEIGHT = 380;
  const MARGIN = 16;
  const LONGEST_NAME = 18;
  const MAX_USUAL = 3; // an interval of more than so many usual widths does not set the axis
  const LINES = ["--contender", "--open-ink", "--trace"]; // none of the colours of better and worse
  const DASHES = [[], [9, 4], [2, 3], [9, 3, 2, 3], [17, 4], [5, 2], [17, 3, 2, 3, 2, 3], [2, 7], [9, 3, 9, 3, 2, 3], [1, 2], [24, 8], [5, 9]];

  /** @typedef {{relative: boolean, zoom: [number, number] | null, onZoom: (range: [number, number] | null) => void, pick: (point: Point) => void}} View */

  /** @param {number} number of a line */
  const dash = (number) => DASHES[number % DASHES.length];
  /** @param {number} number of a line */
  const ink = (number) => color(LINES[number % LINES.length]);

  /** @type {Map<string, string>} */ const colors = new Map(); // of this drawing: looking one up takes long
  /** @param {string} name @returns {string} */
  const color = (name) => {
    const known = colors.get(name) ?? getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    colors.set(name, known);
    return known;
  };

  const list = () => tidemark.list;

  /** The axes of time and of values. @param {boolean} relative */
  const axes = (relative) => {
    const axis = { stroke: color("--soft"), grid: { stroke: color("--rule"), width: 1 }, ticks: { stroke: color("--rule") }, font: "12px system-ui, sans-serif" };
    return [
      { ...axis, space: 72, values: [[DAY * 25, "{YYYY}-{MM}", null, null, null, null, null, null, 1], [3600, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1], [1, "{HH}:{mm}", "\n{YYYY}-{MM}-{DD}", null, null, null, null, null, 1]] },
      {
        ...axis,
        size: 70,
        splits: relative ? (/** @type {any} */ self) => splits(self.scales.y.min, self.scales.y.max) : undefined,
        filter: (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks,
        values: (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks.map((value) => (relative ? (Math.abs(value - 1) < 1e-9 ? "0 %" : percent(value).replace(".0 %", " %")) : amount(value))),
      },
    ];
  };

  /** The range of time: the zoom, the day of a single night, or all nights.
   * @param {number[]} times @param {[number, number] | null} zoom @returns {[number, number]} */
  const span = (times, zoom) => {
    const [first, last] = [times[0], times[times.length - 1]];
    if (zoom) return zoom;
    if (times.length === 1) return [Math.floor(first / DAY) * DAY, Math.floor(first / DAY) * DAY + DAY];
    const margin = Math.max((last - first) * 0.012, DAY / 2);
    return [first - margin, last + margin];
  };

  /** Draws series into `place`, and returns the chart; null without a night.
   * @param {HTMLElement} place @param {Series[]} rows @param {Point[][]} drawn their nights, row by row @param {View} view @returns {any} */
  const draw = (place, rows, drawn, view) => {
    const { relative } = view;
    colors.clear();
    const times = [...new Set(drawn.flat().map((point) => point.at))].sort((a, b) => a - b);
    const where = new Map(times.map((at, position) => [at, position]));
    const data = [times, ...drawn.map((row) => {
      /** @type {(number | null)[]} */ const values = new Array(times.length).fill(null);
      for (const point of row) values[/** @type {number} */ (where.get(point.at))] = shown(point, relative);
      return values;
    })];
    place.replaceChildren();
    seriesKeys.tell(place, null, { ...view, series: rows[0], nights: drawn[0] });
    if (!times.length) return null;
    const sees = visible(rows[0]);
    const [left, right] = span(times, view.zoom);
    const [bottom, top] = ends(drawn[0].filter((point) => point.at >= left && point.at <= right));
    const unit = list().metrics[rows[0].metric][2];
    const marks = changesOf(rows[0]);
    const labels = seriesLabels.prepare(rows.map((series) => list().places[series.place][0]), place.clientWidth);
    const plot = new uPlot({
      width: Math.max(260, place.clientWidth - MARGIN),
      height: HEIGHT,
      padding: [null, labels.width || null, null, null],
      tzDate: (/** @type {number} */ at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      scales: {
        x: { time: true, range: () => [left, right] },
        y: relative
          ? { distr: 3, log: 2, range: (/** @type {any} */ _, /** @type {number} */ low, /** @type {number} */ high) => [Math.min((low ?? 1) * 0.99, bottom, 1 - MIN_RANGE), Math.max((high ?? 1) * 1.01, top, 1 + MIN_RANGE)] }
          : { range: (/** @type {any} */ _, /** @type {number} */ _low, /** @type {number} */ high) => [0, (high || 1) * 1.06] },
      },
      axes: axes(relative),
      cursor: {
        drag: { x: true, y: false, setScale: false },
        bind: { dblclick: () => () => { if (view.zoom) view.onZoom(null); return null; } },
      },
      series: [
        { label: "night", value: (/** @type {any} */ _, /** @type {number} */ at) => (at ? moment(at) : "–") },
        ...rows.map((series, number) => ({
          label: cut(number ? list().places[series.place][0] : `${list().branches[series.branch]}, ${list().places[series.place][0]}`, 2 * LONGEST_NAME),
          stroke: ink(number),
          width: rows.length > 1 ? 1.4 : 1,
          dash: dash(number),
          points: { show: false }, // `nights` draws them, filled or hollow
          value: (/** @type {any} */ _, /** @type {number} */ value) => (value === null || value === undefined ? "–" : relative ? percent(value) : `${amount(value)} ${unit}`),
        })),
      ],
      hooks: {
        drawClear: [(/** @type {any} */ self) => under(self, relative, sees, list().metrics[rows[0].metric][4])],
        draw: [(/** @type {any} */ self) => { over(self, marks); nights(self, rows, drawn, relative); labels.place(self, ink, dash); }],
        setSelect: [(/** @type {any} */ self) => {
          const { left: from, width } = self.select;
          if (width > 4) view.onZoom([self.posToVal(from, "x"), self.posToVal(from + width, "x")]);
        }],
      },
    }, data, place);
    seriesKeys.tell(place, plot, { ...view, series: rows[0], nights: drawn[0] });
    listen(plot, place, rows, (at) => {
      const point = drawn[0].find((night) => night.at === times[at]);
      if (point) view.pick(point);
    });
    return plot;
  };

  /** Lets a click pick a night; the legend only names lines, whole on hover.
   * @param {any} plot @param {HTMLElement} place @param {Series[]} rows @param {(position: number) => void} picked */
  const listen = (plot, place, rows, picked) => {
    const upper = /** @type {HTMLElement} */ (place.querySelector(".u-over"));
    /** @type {number | null} */ let pressed = null;
    upper.addEventListener("mousedown", (event) => { pressed = event.clientX; });
    upper.addEventListener("click", (event) => {
      const at = plot.cursor.idx;
      if (at === null || at === undefined || (pressed !== null && Math.abs(event.clientX - pressed) > 4)) return;
      picked(at);
    });
    place.querySelector(".u-legend")?.addEventListener("click", (event) => event.stopPropagation(), true);
    place.querySelectorAll(".u-legend .u-label").forEach((label, number) => {
      if (number) label.setAttribute("title", list().places[rows[number - 1].place][0]);
    });
  };

  /** How far intervals reach, but not further than makes the nights themselves flat: one that is much wider than
   * others are does not count. @param {Point[]} row the nights whose intervals are drawn @returns {[number, number]} */
  const ends = (row) => {
    const known = row.flatMap(({ interval }) => (interval && interval.low !== null && interval.high !== null ? [[interval.low, interval.high]] : []));
    const widths = known.map(([low, high]) => high / low - 1).sort((a, b) => a - b);
    const usual = widths[Math.floor((widths.length - 1) / 2)];
    const counted = known.filter(([low, high]) => high / low - 1 <= MAX_USUAL * usual);
    const low = Math.min(1, ...counted.map((interval) => interval[0]));
    const high = Math.max(1, ...counted.map((interval) => interval[1]));
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
      const worse = mark.direction === "worse";
      ctx.fillStyle = color(worse ? "--range-worse" : mark.direction === "better" ? "--range-better" : "--range-shift");
      ctx.fillRect(left, bbox.top, width, bbox.height);
      ctx.strokeStyle = color(worse ? "--worse" : mark.direction === "better" ? "--better" : "--soft");
      ctx.setLineDash(mark.confirmed ? [] : [4, 4]);
      ctx.strokeRect(left, bbox.top, width, bbox.height);
    }
    ctx.restore();
  };

  /** The bar of an interval; where it leaves the chart it ends in an arrow.
   * @param {any} self @param {Path2D} bars @param {number} x @param {number} low @param {number} high */
  const bar = (self, bars, x, low, high) => {
    const { top, height } = self.bbox;
    const head = 4 * devicePixelRatio;
    for (const [value, edge, inwards] of [[low, top + height, -head], [high, top, head]]) {
      const y = self.valToPos(value, "y", true);
      const leaves = inwards < 0 ? y > edge : y < edge;
      const end = leaves ? edge : y;
      bars.moveTo(x, self.valToPos(Math.sqrt(low * high), "y", true));
      bars.lineTo(x, end);
      if (!leaves) continue;
      bars.moveTo(x - head, end + inwards);
      bars.lineTo(x, end);
      bars.lineTo(x + head, end + inwards);
    }
  };

  /** The nights of each series, filled or hollow, with the interval of each session that still has its rounds.
   * @param {any} self @param {Series[]} rows @param {Point[][]} drawn @param {boolean} relative */
  const nights = (self, rows, drawn, relative) => {
    const { ctx, bbox } = self;
    const ratio = devicePixelRatio;
    const areSmall = self.data[0].length > SMALL_DOTS;
    const radius = (areSmall || rows.length > 1 ? 1.7 : 2.6) * ratio;
    const sheet = color("--sheet");
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    rows.forEach((series, number) => {
      const sees = visible(series);
      ctx.strokeStyle = ink(number);
      ctx.lineWidth = 1.2 * ratio;
      ctx.setLineDash([]);
      for (const hollow of [false, true]) {
        const bars = new Path2D();
        const circles = new Path2D();
        for (const point of drawn[number]) {
          const value = shown(point, relative);
          if (value === null || isHollow(series, point, sees) !== hollow) continue;
          const x = self.valToPos(point.at, "x", true);
          const y = self.valToPos(value, "y", true);
          const { low, high } = (relative && point.interval) || { low: null, high: null };
          // Bars of ten boxes in the same night would lie over each other.
          if (number === 0 && low !== null && high !== null) bar(self, bars, x, low, high);
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
