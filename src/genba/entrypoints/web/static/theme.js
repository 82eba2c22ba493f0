// Before anything is drawn: the theme that was chosen last.
(() => {
  const kept = localStorage.getItem("genba-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
})();
