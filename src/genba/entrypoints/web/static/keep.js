// What somebody has opened or is writing in stays as it is while the rest of a page is drawn anew.
"use strict";
(() => {
  if (typeof Idiomorph === "undefined") return;
  Idiomorph.defaults.callbacks.beforeNodeMorphed = (there, fresh) => {
    if (there.nodeType !== Node.ELEMENT_NODE) return true;
    if (there.hasAttribute("data-keep")) return false;
    if (there.localName === "details" && there.open && fresh.localName === "details") fresh.open = true;
    return true;
  };
})();
