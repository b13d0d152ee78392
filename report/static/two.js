"use strict";
// Any two versions or nights of a suite on a box: the quotient of their ratios, step by step.
{
  const { amount, cut, day, percent, points, shown } = seriesValues;
  const SHADES = [0.01, 0.03, 0.06, 0.12, 0.2];
  const SIDES = ["first", "second"];

  /** @typedef {{branch: number, point: Point}} Night */

  /** @param {string} id @returns {any} */
  const by = (id) => document.getElementById(id);
  const list = () => tidemark.list;
  const view = () => tidemark.view(location.hash);
  /** @type {Series[]} */ let all = [];
  let showing = 0;

  /** @param {number} place */
  const placeName = (place) => list().places[place].slice(0, 3).join(",");
  /** @param {string} version */
  const isRelease = (version) => /@[\d._]+$/.test(version);
  /** @param {Night} night the name of a night in the address */
  const nightName = ({ branch, point }) => `${list().branches[branch]},${point.uid}`;

  /** Changes the view. @param {Record<string, string>} choices */
  const choose = (choices) => {
    tidemark.choose(choices);
    show();
  };

  /** The nights of all branches of a place, as the first of its steps has them.
   * @param {number} place @param {number} metric @returns {Promise<Night[]>} */
  const nightsOf = async (place, metric) => {
    const here = all.filter((series) => series.place === place && series.metric === metric);
    /** @type {Map<string, Night>} */ const found = new Map();
    const rows = await Promise.all(here.map(points));
    here.forEach((series, at) => {
      for (const point of rows[at]) found.set(`${series.branch} ${point.uid}`, { branch: series.branch, point });
    });
    return [...found.values()].sort((a, b) => b.point.at - a.point.at);
  };

  /** The night that a name in the address stands for: of a version, the latest one.
   * @param {Night[]} nights latest first @param {string} text */
  const named = (nights, text) => nights.find((night) => nightName(night) === text) || nights.find(({ point }) => point.version === text);

  /** @param {any} select @param {Night[]} nights latest first @param {string} wanted */
  const options = (select, nights, wanted) => {
    const group = (/** @type {string} */ label, /** @type {Option[]} */ of) => {
      const made = tidemark.element("optgroup", { label });
      made.append(...of);
      return made;
    };
    /** @typedef {HTMLOptionElement} Option */
    const releases = [...new Set(nights.map(({ point }) => point.version))].filter(isRelease).sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    const branches = [...new Set(nights.map(({ branch }) => branch))];
    const found = named(nights, wanted);
    select.replaceChildren(
      ...(found ? [] : [new Option("choose", "")]),
      ...(releases.length ? [group("releases, in their latest night", releases.map((version) => new Option(version, version)))] : []),
      ...branches.map((branch) => group(`nights of ${list().branches[branch]}`, nights.filter((night) => night.branch === branch)
        .map((night) => new Option(`${day(night.point.at)}, ${cut(night.point.version, 40)}`, nightName(night))))));
    select.value = found ? wanted : "";
  };

  /** @param {Night} night */
  const told = ({ point }) => `${point.version} (night of ${day(point.at)})`;

  /** The night of the base of a branch in the same session.
   * @param {number} place @param {Night[]} nights @param {Night} night */
  const baseBeside = (place, nights, { branch, point }) => nights.find((other) =>
    list().branches[other.branch] === list().places[place][3][list().branches[branch]] && other.point.uid === point.uid);

  /** The names of two nights for an address without one: the latest one, after its base.
   * @param {number} place @param {Night[]} nights latest first */
  const usual = (place, nights) => {
    for (const latest of nights) {
      const base = baseBeside(place, nights, latest);
      if (base) return [nightName(base), nightName(latest)];
    }
    return ["", ""];
  };

  /** The session that measured both versions side by side: the latest night with both, or one that compared them.
   * @param {number} place @param {Night[]} nights latest first @param {Night} a @param {Night} b @returns {string | undefined} */
  const together = (place, nights, a, b) => {
    if (a.point.uid === b.point.uid) return a.point.uid;
    const [box, suite] = list().places[place];
    const versions = [a, b].map(({ point }) => point.version);
    const others = nights.filter(({ point }) => point.version === versions[1]).map(({ point }) => point.uid);
    const direct = list().compared.find((/** @type {any[]} */ row) => row[1] === box && row[2] === suite && versions.every((version) => row[3].includes(version)));
    return direct ? direct[0] : nights.find(({ point }) => point.version === versions[0] && others.includes(point.uid))?.point.uid;
  };

  /** @param {number} ratio @param {any[]} metric @returns {string} */
  const shade = (ratio, metric) => {
    const strength = SHADES.filter((least) => Math.abs(ratio - 1) >= least).length;
    return strength && metric[3] !== "neither" ? `${ratio > 1 === (metric[3] === "higher") ? "better" : "worse"}-${strength}` : "same";
  };

  /** @param {number} place @param {any[]} metric @param {{step: string, before: Point | undefined, after: Point | undefined}[]} steps
   * @param {boolean} isBeside whether one session has both, so that their values are of the same rounds */
  const table = (place, metric, steps, isBeside) => {
    const el = tidemark.element;
    /** @type {number[]} */ const quotients = [];
    const rows = steps.map(({ step, before, after }) => {
      const [old, now] = [before, after].map((point) => (point ? shown(point, !isBeside) : null));
      const quotient = old && now ? now / old : null;
      if (quotient) quotients.push(quotient);
      const moved = quotient === null || Math.abs(quotient - 1) >= metric[4];
      const side = (/** @type {Point | undefined} */ point) => [
        el("td", { class: "n" }, point && point.value !== null ? amount(point.value) : "–"),
        el("td", { class: "n" }, point && shown(point, true) !== null ? percent(/** @type {number} */ (shown(point, true))) : (point && point.gap) || "–"),
      ];
      return el("tr", { "data-step": step, "data-moved": moved ? "yes" : "no" }, el("th", { scope: "row" }, step),
        el("td", { class: `heat ${quotient ? shade(quotient, metric) : "none"}`, "data-v": quotient ? quotient.toPrecision(6) : "" }, quotient ? percent(quotient) : "–"),
        ...side(before), ...side(after));
    });
    const heads = ["step", "second to first", `first, ${metric[2]}`, "first to its base", `second, ${metric[2]}`, "second to its base"];
    const made = el("table", { class: "moved" }, el("caption", {}, `${metric[1]} of ${placeName(place).replaceAll(",", ", ")}: coloured by size alone, nothing here was judged`),
      el("thead", {}, el("tr", {}, ...heads.map((head, at) => el("th", { scope: "col", class: at ? "n" : "" }, head)))), el("tbody", {}, ...rows));
    by("steps").replaceChildren(made);
    tidemark.onlyMoved(made, "steps");
    return quotients;
  };

  /** @param {number} place @param {any[]} metric @param {Night[]} nights @param {[Night, Night]} sides @param {number[]} quotients */
  const sentence = (place, metric, nights, [a, b], quotients) => {
    const el = tidemark.element;
    const uid = together(place, nights, a, b);
    const mean = quotients.length ? Math.exp(quotients.reduce((sum, quotient) => sum + Math.log(quotient), 0) / quotients.length) : null;
    const isSame = uid === a.point.uid && uid === b.point.uid;
    const bases = [a, b].map((night) => baseBeside(place, nights, night)?.point.version);
    const moved = bases[0] === bases[1] ? "" : ` Their bases differ: ${bases[0]} and ${bases[1]}.`;
    const how = isSame ? "Both are of one session." : "Each is the quotient of two ratios to the base of their nights, without an interval.";
    by("said").replaceChildren(
      el("p", { class: "sentence" }, `${told(b)} against ${told(a)}: ${mean === null ? "no step has both" : `${percent(mean)} ${metric[1]} as the geometric mean of ${quotients.length} step${quotients.length > 1 ? "s" : ""}`}. ${how}${moved}`),
      uid
        ? el("p", {}, "Measured side by side, with intervals and verdicts: ", el("a", { href: `${tidemark.root}sessions/${uid}.html` }, `session ${uid}`), ".")
        : el("pre", { tabindex: "0", role: "group", "aria-label": "To measure both side by side" }, `./tidemark run --suite ${list().places[place][1]} --until-decided ${a.point.version} ${b.point.version}`));
  };

  /** @param {string} text @param {string} title */
  const say = (text, title) => {
    by("state").textContent = text;
    document.title = `${title} · Tidemark`;
    document.documentElement.dataset.ready = location.hash || "none";
  };

  /** Loads and shows the steps of two nights. @param {number} place @param {number} metric @param {Night[]} nights @param {[Night, Night]} sides */
  const compare = async (place, metric, nights, sides) => {
    const number = showing;
    const here = all.filter((series) => series.place === place && series.metric === metric);
    const steps = [...new Set(here.map((series) => series.step))];
    const of = async (/** @type {number} */ step, /** @type {Night} */ night) => {
      const series = here.find((found) => found.step === step && found.branch === night.branch);
      return series ? (await points(series)).find((point) => point.uid === night.point.uid) : undefined;
    };
    const rows = await Promise.all(steps.map(async (step) => ({ step: list().steps[step][0], before: await of(step, sides[0]), after: await of(step, sides[1]) })));
    if (number !== showing) return;
    const quotients = table(place, list().metrics[metric], rows, sides[0].point.uid === sides[1].point.uid);
    sentence(place, list().metrics[metric], nights, sides, quotients);
    say("", `${sides[1].point.version} against ${sides[0].point.version}, ${list().places[place][1]} on ${list().places[place][0]}`);
  };

  /** Shows the view in the address. */
  const show = async () => {
    const number = ++showing;
    const wanted = view();
    const places = [...new Set(all.map((series) => series.place))];
    const asked = wanted.get("place");
    const place = places.find((candidate) => placeName(candidate) === asked) ?? places[0];
    const metrics = [...new Set(all.filter((series) => series.place === place).map((series) => series.metric))].sort((a, b) => a - b);
    const called = (/** @type {string | undefined} */ text) => metrics.find((candidate) => list().metrics[candidate][0] === text);
    const metric = called(wanted.get("metric")) ?? called(list().places[place][6]) ?? metrics[0];
    by("place").replaceChildren(...places.map((candidate) => new Option(placeName(candidate).replaceAll(",", ", "), placeName(candidate), false, candidate === place)));
    by("metric").replaceChildren(...metrics.map((candidate) => new Option(`${list().metrics[candidate][1]}, ${list().metrics[candidate][2]}`, list().metrics[candidate][0], false, candidate === metric)));
    for (const id of ["said", "steps"]) by(id).replaceChildren();
    if (asked && placeName(place) !== asked) {
      for (const side of SIDES) by(side).replaceChildren();
      say(`This site has no nights of ${asked}. Choose a box and suite above.`, "Unknown box and suite");
      return;
    }
    by("state").textContent = "Loading the nights.";
    const nights = await nightsOf(place, metric);
    if (number !== showing) return;
    const names = SIDES.some((side) => wanted.has(side)) ? SIDES.map((side) => wanted.get(side) || "") : usual(place, nights);
    SIDES.forEach((side, at) => options(by(side), nights, names[at]));
    const [a, b] = names.map((name) => named(nights, name));
    const unknown = names.filter((name, at) => name && ![a, b][at]);
    if (a && b) await compare(place, metric, nights, [a, b]);
    else say(unknown.length ? `No night of this suite and box measured ${unknown.join(" or ")}.` : "Choose two versions or nights.", "Any two compared");
  };

  document.addEventListener("DOMContentLoaded", () => {
    if (!list() || !by("controls")) return;
    all = list().series.map((/** @type {any[]} */ row) => ({ place: row[0], branch: row[1], step: row[2], metric: row[3], id: row[4] }));
    for (const id of ["place", "metric"]) by(id).addEventListener("change", () => choose({ [id]: by(id).value }));
    for (const id of SIDES) by(id).addEventListener("change", () => choose({ first: by("first").value, second: by("second").value }));
    by("swap").addEventListener("click", () => choose({ first: by("second").value, second: by("first").value }));
    addEventListener("hashchange", show);
    show();
  });
}
