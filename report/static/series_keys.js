"use strict";
// The keyboard on the chart of a series: one Tab stop, arrows within, and in words what a sighted reader sees.

const seriesKeys = (() => {
  const { amount, baseOf, changesOf, day, moment, name, percent, shown } = seriesValues;
  const DAY = 86400;

  /** @typedef {{series: Series, nights: Point[], relative: boolean, zoom: [number, number] | null,
   *   onZoom: (range: [number, number] | null) => void, pick: (point: Point) => void}} Read */

  /** @type {Read | null} */ let read = null;
  /** @type {string} the session of the night that is read */ let at = "";

  /** @param {Point} point @param {Read} of */
  const value = (point, { relative, series }) => {
    const number = shown(point, relative);
    if (number === null) return point.gap || "no value";
    return relative ? percent(number) : `${amount(number)} ${tidemark.list.metrics[series.metric][2]}`;
  };

  /** @param {Point} point @param {Read} of */
  const spoken = (point, of) => {
    const { low, high } = (of.relative && point.interval) || { low: null, high: null };
    const parts = [
      `${moment(point.at)}: ${value(point, of)}`,
      low === null || high === null ? "" : `interval ${percent(low)} to ${percent(high)}`,
      point.interval && point.interval.open ? "undecided" : "",
      point.dropped ? `${point.dropped} dropped rounds` : "",
      point.version,
    ];
    return parts.filter(Boolean).join(", ");
  };

  /** @param {Read} of */
  const finding = (of) => {
    const { series, nights, relative } = of;
    const known = nights.filter((point) => shown(point, relative) !== null);
    if (!known.length) return `${name(series)}: no value in this range`;
    const [first, last] = [known[0], known[known.length - 1]];
    const within = changesOf(series).filter((/** @type {any} */ change) => change.to >= nights[0].at && change.from <= last.at)
      .map((/** @type {any} */ change) => `${percent(change.ratio)} between ${day(change.from)} and ${day(change.to)}${change.confirmed ? ", confirmed" : ""}`);
    return `${name(series)}, ${relative ? `relative to ${baseOf(series)}` : "absolute"}: ${known.length} night${known.length > 1 ? "s" : ""} from ${day(first.at)} to ${day(last.at)}, latest ${value(last, of)}; `
      + (within.length ? `changes: ${within.join("; ")}` : "no change was found");
  };

  /** @param {HTMLElement} place @param {any} plot @param {number} index */
  const move = (place, plot, index) => {
    if (!read) return;
    const point = read.nights[index];
    at = point.uid;
    place.setAttribute("aria-valuenow", String(index + 1));
    place.setAttribute("aria-valuetext", spoken(point, read));
    const number = shown(point, read.relative);
    plot.setCursor({ left: plot.valToPos(point.at, "x"), top: number === null ? 0 : plot.valToPos(number, "y") });
  };

  /** Tells the keyboard and screen readers what a chart shows.
   * @param {HTMLElement} place @param {any} plot @param {Read} shownNow */
  const tell = (place, plot, shownNow) => {
    const { zoom } = shownNow;
    read = { ...shownNow, nights: zoom ? shownNow.nights.filter((point) => point.at >= zoom[0] && point.at <= zoom[1]) : shownNow.nights };
    place.setAttribute("aria-label", finding(read));
    place.setAttribute("aria-valuemin", read.nights.length ? "1" : "0");
    place.setAttribute("aria-valuemax", String(read.nights.length));
    const index = read.nights.findIndex((point) => point.uid === at);
    const last = read.nights.length - 1;
    place.setAttribute("aria-valuenow", String(Math.max(0, (index < 0 ? last : index) + 1)));
    place.setAttribute("aria-valuetext", last < 0 ? "no night" : spoken(read.nights[index < 0 ? last : index], read));
    if (plot && index >= 0 && place === document.activeElement) move(place, plot, index);
  };

  /** Narrows the chart around a night, or widens it. @param {any} plot @param {Point | undefined} point @param {number} factor */
  const magnify = (plot, point, factor) => {
    if (!read) return;
    const { min, max } = plot.scales.x;
    const middle = point && factor < 1 ? point.at : (min + max) / 2;
    const half = ((max - min) * factor) / 2;
    const times = plot.data[0];
    if (half < DAY / 2) return;
    const isAll = middle - half <= times[0] && middle + half >= times[times.length - 1];
    read.onZoom(isAll ? null : [middle - half, middle + half]);
  };

  /** @param {KeyboardEvent} event @param {any} plot @param {HTMLElement} place @returns {boolean} whether the key is one of the chart's */
  const pressed = (event, plot, place) => {
    if (!read || !read.nights.length || event.ctrlKey || event.metaKey || event.altKey) return false;
    const last = read.nights.length - 1;
    const now = read.nights.findIndex((point) => point.uid === at);
    /** @type {Record<string, number>} */
    const places = { ArrowLeft: now < 0 ? last : Math.max(0, now - 1), ArrowDown: now < 0 ? last : Math.max(0, now - 1), ArrowRight: now < 0 ? 0 : Math.min(last, now + 1), ArrowUp: now < 0 ? 0 : Math.min(last, now + 1), Home: 0, End: last, PageUp: Math.min(last, now + 10), PageDown: Math.max(0, now - 10) };
    /** @type {Record<string, () => void>} */
    const others = {
      Enter: () => { if (read && now >= 0) read.pick(read.nights[now]); },
      "+": () => magnify(plot, read?.nights[now], 0.5),
      "-": () => magnify(plot, read?.nights[now], 2),
      "0": () => read?.onZoom(null),
    };
    if (event.key in places) move(place, plot, places[event.key]);
    else if (event.key in others) others[event.key]();
    else return false;
    return true;
  };

  return { tell, pressed };
})();
