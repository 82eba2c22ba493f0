// The board: columns that somebody has unfolded stay unfolded when the board is drawn anew.
"use strict";
(() => {
  const unfolded = new Set();
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const cards = event.detail.requestConfig?.elt.closest(".more")?.closest(".cards");
    if (cards) unfolded.add(cards.dataset.status);
  });
  document.body.addEventListener("htmx:configRequest", (event) => {
    if (event.detail.elt.id !== "live") return;
    for (const status of unfolded) {
      const shown = document.querySelectorAll(`.cards[data-status="${status}"] .card-item`).length;
      event.detail.parameters[`show-${status}`] = shown;
    }
  });
})();
