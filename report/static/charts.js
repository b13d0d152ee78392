"use strict";
// A chart is one stop of the Tab key; arrows, Home and End go from mark to mark within it, and Escape back to the
// chart. A chart that is wider than its frame opens at its change, else at its newest end.
{
  /** @param {HTMLElement} frame @returns {SVGElement[]} its marks, from left to right */
  const marksOf = (frame) =>
    /** @type {SVGElement[]} */ ([...frame.querySelectorAll("svg a, svg g[tabindex]")])
      .map((mark) => ({ mark, at: mark.getBoundingClientRect().left }))
      .sort((first, second) => first.at - second.at)
      .map(({ mark }) => mark);

  /** @param {HTMLElement} frame @param {string} key @returns {SVGElement | HTMLElement | undefined} */
  const next = (frame, key) => {
    if (key === "Escape") return frame;
    const marks = marksOf(frame);
    const at = marks.findIndex((mark) => mark === document.activeElement);
    switch (key) {
      case "Home": return marks[0];
      case "End": return marks.at(-1);
      case "ArrowRight": return marks[Math.min(at + 1, marks.length - 1)];
      case "ArrowLeft": return at < 0 ? marks.at(-1) : marks[Math.max(at - 1, 0)];
      default: return undefined;
    }
  };

  /** @param {HTMLElement} frame */
  const open = (frame) => {
    const change = [...frame.querySelectorAll(".nights:not(.trend) .range")].at(-1);
    if (!change || frame.scrollWidth <= frame.clientWidth) return;
    const place = change.getBoundingClientRect(), around = frame.getBoundingClientRect();
    frame.scrollLeft += (place.left + place.right) / 2 - (around.left + around.right) / 2;
  };

  document.addEventListener("DOMContentLoaded", () => {
    const frames = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".plot"));
    for (const frame of frames) {
      open(frame);
      frame.addEventListener("keydown", (event) => {
        if (event.altKey || event.ctrlKey || event.metaKey) return;
        const target = next(frame, event.key);
        if (!target) return;
        event.preventDefault();
        target.focus();
      });
    }
  });
}
