// Before anything is drawn: the theme that was chosen last, and a button that is pressed before the page is ready.
"use strict";
(() => {
  const kept = localStorage.getItem("genba-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;

  // A form that the scripts do not know yet (they still load, or it came a moment ago) waits for them, so that it asks
  // before it acts and the page stays. Where they never come, the browser sends it by itself.
  const loaded = new Promise((resolve) => addEventListener("DOMContentLoaded", resolve));
  const alone = new WeakSet();
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (event.defaultPrevented || !form.matches("form[hx-post]") || alone.has(form)) return;
    event.preventDefault();
    await loaded;
    await new Promise((resolve) => setTimeout(resolve)); // A form that is being sent cannot be sent.
    if (typeof htmx === "undefined") alone.add(form);
    else htmx.process(form);
    form.requestSubmit(event.submitter);
  });
})();
