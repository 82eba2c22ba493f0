// The log of a run: it follows the end while the end is in view, and holds a bounded number of lines.
"use strict";
(() => {
  const MOST = 5000;
  const log = document.getElementById("log");
  const more = document.getElementById("log-more");
  if (!log || !more) return;
  const list = log.querySelector("ol");
  const atEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 60;
  let follows = true;
  const toEnd = () => { log.scrollTop = log.scrollHeight; };
  log.addEventListener("scroll", () => { follows = atEnd(); });
  toEnd();

  more.addEventListener("htmx:configRequest", (event) => { event.detail.parameters.after = log.dataset.end; });
  more.addEventListener("htmx:afterRequest", (event) => {
    const answer = event.detail.xhr;
    const end = answer.getResponseHeader("genba-log-end");
    if (end) log.dataset.end = end;
  });
  const grown = (event) => {
    if (event.target !== list && !list.contains(event.target)) return;
    if (event.detail.elt?.id === "log-more" || event.detail.requestConfig?.elt === more) {
      const lines = list.children;
      if (lines.length > (follows ? MOST : 4 * MOST)) {
        while (lines.length > MOST) lines[0].remove();
        document.getElementById("cut").hidden = false;
      }
      if (follows) toEnd();
      if (event.detail.xhr?.getResponseHeader("genba-log-more") === "1") htmx.trigger(more, "again");
    }
  };
  document.body.addEventListener("htmx:afterSwap", grown);

  const show = document.getElementById("only");
  show?.addEventListener("change", () => { log.dataset.only = show.value; if (follows) toEnd(); });
})();
