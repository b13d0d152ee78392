"use strict";
// A click on a frame of a flame graph widens it and what it calls; a click on a frame above it leads back.
{
  const LETTER = 6.4;
  const picture = /** @type {SVGSVGElement} */ (/** @type {unknown} */ (document.documentElement));
  const width = picture.viewBox.baseVal.width;
  const frames = [...picture.querySelectorAll("g")].map((group) => {
    const rect = /** @type {SVGRectElement} */ (group.querySelector("rect"));
    const [x, y, w] = ["x", "y", "width"].map((name) => Number(rect.getAttribute(name)));
    return { group, rect, text: /** @type {SVGTextElement} */ (group.querySelector("text")), name: group.dataset.name || "", x, y, w };
  });

  /** @param {{x: number, y: number, w: number}} chosen */
  const show = (chosen) => {
    for (const { group, rect, text, name, x, y, w } of frames) {
      const caller = y < chosen.y && x <= chosen.x + 0.01 && x + w >= chosen.x + chosen.w - 0.01;
      const within = y >= chosen.y && x >= chosen.x - 0.01 && x + w <= chosen.x + chosen.w + 0.01;
      group.style.display = caller || within ? "" : "none";
      const [left, wide] = caller ? [0, width] : [((x - chosen.x) * width) / chosen.w, (w * width) / chosen.w];
      const letters = Math.floor((wide - 6) / LETTER);
      rect.setAttribute("x", left.toFixed(2));
      rect.setAttribute("width", wide.toFixed(2));
      text.setAttribute("x", (left + 3).toFixed(2));
      text.textContent = letters >= name.length ? name : letters > 2 ? `${name.slice(0, letters - 1)}…` : "";
    }
  };
  for (const frame of frames) frame.group.addEventListener("click", () => show(frame));
}
