// The graph of tasks. Where each stands is decided by the server; here it is drawn, and kept as the reader has it.
"use strict";
(() => {
  const frame = document.getElementById("graph");
  if (!frame || typeof cytoscape === "undefined") return;
  const [COLUMN, ROW, WIDTH, HEIGHT] = [230, 74, 180, 46];
  const colour = window.colourNow;
  const note = (text) => (document.getElementById("graph-note").textContent = text);

  // The shapes of the states are those of the legend, in its colours.
  const look = () => {
    const found = {};
    for (const entry of document.querySelectorAll("#legend [data-status]")) {
      const state = entry.querySelector(".state");
      const ink = getComputedStyle(state).color;
      const shape = state.querySelector("svg").cloneNode(true);
      shape.setAttribute("xmlns", "http://www.w3.org/2000/svg");
      shape.setAttribute("width", "32");
      shape.setAttribute("height", "32");
      const drawn = shape.outerHTML.replaceAll("currentColor", ink);
      found[entry.dataset.status] = { ink, image: `data:image/svg+xml;utf8,${encodeURIComponent(drawn)}` };
    }
    return found;
  };
  const styles = () => {
    const states = look();
    const [text, quiet, line, surface] = ["--text", "--quiet", "--line", "--surface"].map(colour);
    return [
      { selector: "node", style: {
        shape: "round-rectangle", width: WIDTH, height: HEIGHT, "background-color": surface, "border-width": 1.5, "border-color": line,
        label: "data(label)", color: text, "font-size": 12, "font-family": "system-ui, sans-serif", "text-wrap": "wrap", "text-max-width": WIDTH - 44,
        "text-valign": "center", "text-halign": "center", "text-margin-x": 12, "text-justification": "left",
        "background-width": 18, "background-height": 18, "background-position-x": 9, "background-position-y": "50%", "background-fit": "none", "background-clip": "none",
      } },
      ...Object.entries(states).map(([status, { ink, image }]) => ({ selector: `node[status = "${status}"]`, style: { "border-color": ink, "background-image": image } })),
      { selector: 'node[status = "done"], node[status = "cancelled"]', style: { color: quiet } },
      { selector: "node[alive]", style: { "border-width": 3 } },
      { selector: "node[needs]", style: { "border-width": 3, "border-color": colour("--blocked") } },
      { selector: "node:active, node.near", style: { "overlay-opacity": 0.08, "overlay-color": colour("--accent") } },
      { selector: "edge", style: { width: 1.6, "curve-style": "bezier", "target-arrow-shape": "triangle", "arrow-scale": 0.9, "line-color": quiet, "target-arrow-color": quiet, opacity: 0.75 } },
      { selector: 'edge[kind = "part_of"]', style: { "line-style": "dashed", "line-color": colour("--review"), "target-arrow-color": colour("--review") } },
      { selector: 'edge[kind = "blocked_by"]', style: { width: 2.4, "line-color": colour("--bad"), "target-arrow-color": colour("--bad") } },
    ];
  };

  // What has no space to break at may be broken anywhere.
  const breakable = (text) => text.replace(/\S{15}(?=\S)/gu, "$&\u200b");
  const short = (text) => breakable([...text].length > 42 ? `${[...text].slice(0, 41).join("")}…` : text);
  const elements = (picture) => [
    ...picture.nodes.map((node) => ({
      group: "nodes",
      data: { id: `n${node.number}`, number: node.number, label: `#${node.number} ${short(node.title)}`, status: node.status, alive: node.alive || undefined, needs: node.needs_you || undefined, why: node.why },
      position: { x: node.x * COLUMN, y: node.y * ROW },
    })),
    ...picture.edges.map((edge) => ({
      group: "edges",
      data: { id: `e${edge.first}-${edge.later}-${edge.kind}`, source: `n${edge.first}`, target: `n${edge.later}`, kind: edge.kind },
    })),
  ];

  let cy = null;
  const moved = new Set();
  const renew = (picture) => {
    const fresh = elements(picture);
    const wanted = new Set(fresh.map((each) => each.data.id));
    cy.batch(() => {
      cy.elements().filter((each) => !wanted.has(each.id())).remove();
      for (const each of fresh) {
        const there = cy.getElementById(each.data.id);
        if (there.empty()) cy.add(each);
        else {
          for (const name of ["alive", "needs"]) if (each.data[name] === undefined) there.removeData(name);
          there.data(each.data);
          // A task that the user moved stays; the others follow the server.
          if (each.group === "nodes" && !moved.has(each.data.id)) there.position(each.position);
        }
      }
    });
  };
  const first = (picture) => {
    cy = cytoscape({
      container: frame, elements: elements(picture), style: styles(), layout: { name: "preset" },
      minZoom: 0.08, maxZoom: 2.5, boxSelectionEnabled: false, autounselectify: true, textureOnViewport: picture.nodes.length > 200, pixelRatio: "auto",
    });
    fit();
    cy.on("tap", "node", (event) => location.assign(`/tasks/${event.target.data("number")}`));
    cy.on("mouseover", "node", (event) => { note(`${event.target.data("label")}: ${event.target.data("why") || event.target.data("status")}`); event.target.addClass("near"); frame.classList.add("pointing"); });
    cy.on("mouseout", "node", (event) => { note(""); event.target.removeClass("near"); });
    cy.on("dragfree", "node", (event) => moved.add(event.target.id()));
    window.genbaGraph = cy;
    frame.dataset.drawn = String(picture.nodes.length);
  };
  const fit = () => {
    cy.fit(undefined, 24);
    // What is small is not blown up, and what is large is shown from where one can read it.
    const zoom = Math.min(1, Math.max(cy.zoom(), 0.45));
    if (zoom === cy.zoom()) return;
    cy.zoom(zoom);
    const box = cy.elements().boundingBox();
    const [wide, tall] = [box.w * zoom, box.h * zoom];
    cy.pan({
      x: wide < frame.clientWidth ? (frame.clientWidth - wide) / 2 - box.x1 * zoom : 24 - box.x1 * zoom,
      y: tall < frame.clientHeight ? (frame.clientHeight - tall) / 2 - box.y1 * zoom : 24 - box.y1 * zoom,
    });
  };
  const load = async () => {
    const answer = await fetch(frame.dataset.source, { headers: { accept: "application/json" } });
    if (!answer.ok) return note("The graph cannot be read now.");
    const picture = await answer.json();
    if (cy) renew(picture);
    else first(picture);
    frame.dataset.drawn = String(picture.nodes.length);
    return undefined;
  };
  const nearer = (by) => cy && cy.zoom({ level: cy.zoom() * by, renderedPosition: { x: frame.clientWidth / 2, y: frame.clientHeight / 2 } });
  document.getElementById("zoom-in").addEventListener("click", () => nearer(1.3));
  document.getElementById("zoom-out").addEventListener("click", () => nearer(1 / 1.3));
  document.getElementById("zoom-all").addEventListener("click", () => cy && cy.fit(undefined, 24));
  document.addEventListener("focusin", (event) => {
    const row = event.target.closest?.("tr[id^=node-]");
    if (!cy || !row) return;
    cy.nodes(".near").removeClass("near");
    cy.getElementById(`n${row.id.slice(5)}`).addClass("near");
  });
  const paint = () => cy && cy.style(styles());
  new MutationObserver(paint).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  document.body.addEventListener("htmx:afterSwap", load);
  load();
})();
