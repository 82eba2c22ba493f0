// Opened sections and fields in use stay as they are while the rest of the page is drawn again.
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
