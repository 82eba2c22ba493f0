// The bars of the timeline: the text below explains the one that is pointed at or focused.
"use strict";
(() => {
  const hint = "Point at a bar, or focus one and use the arrow keys. Times are UTC.";
  const bars = () => [...document.querySelectorAll("#gantt .bar")];
  const say = (bar) => {
    const line = document.getElementById("bar-text");
    if (line) line.textContent = bar ? bar.querySelector("title").textContent : hint;
  };
  // One bar is reached by the tab key, so that a thousand of them are one stop.
  const choose = (chosen) => bars().forEach((bar) => bar.setAttribute("tabindex", bar === chosen ? "0" : "-1"));
  const settle = () => {
    const all = bars();
    const last = all[all.length - 1];
    const focused = document.activeElement?.closest?.("#gantt .bar");
    if (last) choose(focused || last);
    const meant = focused || document.querySelector("#gantt .bar:hover");
    if (meant) say(meant);
  };
  document.addEventListener("mouseover", (event) => {
    const bar = event.target.closest?.("#gantt .bar");
    if (bar) say(bar);
  });
  document.addEventListener("focusin", (event) => {
    const bar = event.target.closest?.("#gantt .bar");
    if (!bar) return;
    choose(bar);
    say(bar);
  });
  document.addEventListener("keydown", (event) => {
    const bar = event.target.closest?.("#gantt .bar");
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!bar || (!by && event.key !== "Home" && event.key !== "End")) return;
    const all = bars();
    const at = event.key === "Home" ? 0 : event.key === "End" ? all.length - 1 : all.indexOf(bar) + by;
    const next = all[Math.min(all.length - 1, Math.max(0, at))];
    event.preventDefault();
    next.focus();
  });
  document.body.addEventListener("htmx:afterSwap", settle);
  settle();
})();
