"use strict";
// The names of boxes at the ends of their lines: with the dashes they tell lines apart without colours.

const seriesLabels = (() => {
  const { cut } = seriesValues;
  const LINE = 15;
  const LETTER = 6.6;
  const LEADER = 14;
  const LONGEST_NAME = 18;
  const NARROW = 520; // of a chart this narrow names take less

  /** Places at least LINE apart, as near to the wanted ones as the height allows.
   * @param {number[]} wanted from above @param {number} height @returns {number[]} */
  const spread = (wanted, height) => {
    const placed = [...wanted];
    placed.forEach((y, at) => { placed[at] = Math.max(y, at ? placed[at - 1] + LINE : LINE / 2); });
    for (let at = placed.length - 1; at >= 0; at -= 1) placed[at] = Math.min(placed[at], at === placed.length - 1 ? height - LINE / 2 : placed[at + 1] - LINE);
    return placed;
  };

  /** The last known value of a line. @param {any} self @param {number} number of the line */
  const end = (self, number) => {
    const values = self.data[number + 1];
    const { min, max } = self.scales.x;
    for (let at = values.length - 1; at >= 0; at -= 1) {
      if (values[at] !== null && self.data[0][at] >= min && self.data[0][at] <= max) return { number, x: self.valToPos(self.data[0][at], "x"), y: self.valToPos(values[at], "y") };
    }
    return null;
  };

  /** @param {string[]} names of the lines @param {number} space of the whole chart
   * @returns {{width: number, place: (self: any, ink: (number: number) => string, dash: (number: number) => number[]) => void}} */
  const prepare = (names, space) => {
    if (names.length < 2) return { width: 0, place: () => {} };
    const texts = names.map((name) => cut(name, space < NARROW ? LONGEST_NAME / 2 : LONGEST_NAME));
    const width = Math.max(...texts.map((text) => text.length)) * LETTER + LEADER + 10;
    /** @type {HTMLElement[]} */ const labels = [];
    return {
      width,
      place: (self, ink, dash) => {
        const { ctx, over, bbox } = self;
        const ratio = devicePixelRatio;
        const found = names.map((_, number) => end(self, number)).flatMap((last) => (last ? [last] : [])).sort((a, b) => a.y - b.y);
        const heights = spread(found.map(({ y }) => y), over.clientHeight);
        labels.forEach((label) => label.remove());
        labels.length = 0;
        ctx.save();
        found.forEach(({ number, x, y }, at) => {
          const label = tidemark.element("span", { class: "line-end", title: names[number] }, texts[number]);
          label.style.color = ink(number);
          label.style.left = `${over.offsetLeft + over.clientWidth + LEADER + 4}px`;
          label.style.top = `${over.offsetTop + heights[at] - LINE / 2}px`;
          over.after(label);
          labels.push(label);
          ctx.strokeStyle = ink(number);
          ctx.lineWidth = ratio;
          ctx.setLineDash(dash(number).map((length) => length * ratio));
          ctx.beginPath();
          ctx.moveTo(bbox.left + x * ratio, bbox.top + y * ratio);
          ctx.lineTo(bbox.left + bbox.width, bbox.top + heights[at] * ratio);
          ctx.lineTo(bbox.left + bbox.width + LEADER * ratio, bbox.top + heights[at] * ratio);
          ctx.stroke();
        });
        ctx.restore();
      },
    };
  };

  return { prepare };
})();
