"use strict";
// The values of a series as its files hold them, and what the index says of it.

/** @typedef {{id: string, place: number, branch: number, step: number, metric: number}} Series */
/** @typedef {{low: number | null, high: number | null, open: boolean}} Interval */
/** @typedef {{at: number, uid: string, version: string, value: number | null, base: number | null, gap: string, interval: Interval | null, dropped: number}} Point */

const seriesValues = (() => {
  const MINUTE = 60;

  /** @param {number} seconds */
  const day = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10);
  /** @param {number} seconds */
  const moment = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ") + " UTC";
  /** @param {number} ratio */
  const percent = (ratio) => `${ratio >= 1 ? "+" : "−"}${Math.abs(100 * (ratio - 1)).toFixed(1)} %`;
  /** @param {number} value */
  const amount = (value) => (Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en").replaceAll(",", "\u202f") : String(Number(value.toPrecision(4))));
  const list = () => tidemark.list;

  /** A long name without its middle: the ends of names of boxes differ. @param {string} text @param {number} most */
  const cut = (text, most) => {
    const letters = [...text];
    const kept = Math.floor((most - 1) / 2);
    return letters.length <= most ? text : `${letters.slice(0, most - 1 - kept).join("")}…${letters.slice(-kept).join("")}`;
  };

  /** @param {Series} series */
  const name = (series) => `${list().steps[series.step][0]} ${list().metrics[series.metric][1]}, ${list().branches[series.branch]} on ${list().places[series.place][0]}`;

  /** The branch that the branch of a series is judged against; null of a base, and where there is none.
   * @param {Series} series @returns {string | null} */
  const baseOf = (series) => list().places[series.place][3][list().branches[series.branch]] ?? null;

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
   * @param {Series} series @returns {Promise<Point[]>} */
  const points = async (series) => {
    const place = list().places[series.place];
    const [, , , , named, folder] = place;
    const file = list().steps[series.step][1];
    const branch = list().branches[series.branch];
    const base = baseOf(series);
    const metric = list().metrics[series.metric][0];
    /** @type {Point[]} */ const found = [];
    await Promise.all(named.map((/** @type {[string, string[]]} */ [name]) => once(`${folder}/${file}/${name}.js`)));
    for (const period of named.flatMap((/** @type {[string, string[]]} */ [, periods]) => periods)) {
      const shard = tidemark.shards.get(`${folder}/${file}/${period}`);
      if (!shard) continue;
      /** @param {string} whose */
      const row = (whose) => unpacked((shard.v[whose] || {})[metric] || [0, 0, ""]);
      const values = row(branch);
      const bases = base === null ? [] : row(base);
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

  /** @param {Point} point @param {boolean} relative */
  const shown = (point, relative) => {
    if (point.value === null) return null;
    if (!relative) return point.value;
    return point.base !== null && point.base > 0 && point.value > 0 ? point.value / point.base : null;
  };

  /** @param {Series} series @returns {number | null} */
  const visible = (series) => {
    const [box, suite, configuration] = list().places[series.place];
    if (list().metrics[series.metric][5]) return list().metrics[series.metric][4]; // what is counted
    const row = list().sees.find((/** @type {any[]} */ sees) => sees[0] === box && sees[1] === suite && sees[2] === configuration
      && sees[3] === list().branches[series.branch] && sees[4] === list().steps[series.step][0] && sees[5] === list().metrics[series.metric][0]);
    return row ? row[6] : null;
  };

  /** Whether a night shows nothing for certain: its verdict is open, rounds were dropped, or its step is blind.
   * @param {Series} series @param {Point} point @param {number | null} sees */
  const isHollow = (series, point, sees) => {
    if (point.dropped || (point.interval && point.interval.open)) return true;
    if (point.interval || baseOf(series) === null) return false;
    const ratio = shown(point, true);
    return sees === null || (ratio !== null && sees > list().metrics[series.metric][4] && Math.abs(ratio - 1) < sees);
  };

  /** @param {Series} series */
  const changesOf = (series) => list().changes.flatMap((/** @type {any[]} */ change) =>
    change[3].filter((/** @type {any[]} */ member) => member[0] === series.id)
      .map((/** @type {any[]} */ member) => ({ name: change[0], path: change[1], direction: change[2], from: member[1] * MINUTE, to: member[2] * MINUTE, ratio: member[3], confirmed: member[4] })));

  /** A series with those of other boxes that can share an axis with it, and of those that cannot the reason: they
   * have another suite, configuration or base. A branch has one engine, so that its base says the rest.
   * @param {Series[]} all @param {Series} series @returns {{drawn: Series[], left: string[]}} */
  const comparable = (all, series) => {
    const parts = ["suite", "configuration", "base"];
    const wanted = [...list().places[series.place].slice(1, 3), baseOf(series)];
    const drawn = [series];
    /** @type {string[]} */ const left = [];
    for (const other of all) {
      if (other === series || other.branch !== series.branch || other.step !== series.step || other.metric !== series.metric) continue;
      const box = list().places[other.place][0];
      const found = [...list().places[other.place].slice(1, 3), baseOf(other)];
      const differs = parts.findIndex((_, at) => found[at] !== wanted[at]);
      if (differs < 0) drawn.push(other);
      else left.push(`${box} (${parts[differs]} ${found[differs] ?? "unknown"})`);
    }
    return { drawn, left };
  };

  return { day, moment, percent, amount, cut, name, baseOf, points, shown, visible, isHollow, changesOf, comparable };
})();
