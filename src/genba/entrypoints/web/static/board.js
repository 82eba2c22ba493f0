// The board: columns stay unfolded when the board is drawn again.
"use strict";
(() => {
  const unfolded = new Set();
  const asked = new Map();
  const count = (status) => document.querySelectorAll(`.cards[data-status="${status}"] .card-item`).length;
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const cards = event.detail.requestConfig?.elt.closest(".more")?.closest(".cards");
    if (cards) unfolded.add(cards.dataset.status);
    const live = event.detail.target;
    if (live.id !== "live" || [...unfolded].every((status) => asked.get(status) === count(status))) return;
    // It was asked for before a column was unfolded, and would fold it again.
    event.detail.shouldSwap = false;
    setTimeout(() => {
      live.dataset.digest = "";
      htmx.trigger(live, "sse:changed");
    });
  });
  document.body.addEventListener("htmx:configRequest", (event) => {
    if (event.detail.elt.id !== "live") return;
    for (const status of unfolded) {
      asked.set(status, count(status));
      event.detail.parameters[`show-${status}`] = count(status);
    }
  });
})();
