// What all pages share: the line to the server, what a button has done, copying, keys, the theme.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);

  // ── the line to the server ──────────────────────────────────────────────────────────────────────────────────────
  const line = (state, text) => {
    const shown = $("line");
    if (!shown) return;
    shown.dataset.state = state;
    shown.querySelector(".text").textContent = text;
  };
  document.body.addEventListener("htmx:sseOpen", () => line("live", "live"));
  document.body.addEventListener("htmx:sseError", () => line("lost", "reconnecting"));
  document.body.addEventListener("htmx:sseClose", () => line("lost", "not connected"));

  // A browser opens few lines to one server at a time. A hidden page closes its own, so that ten of them
  // can be kept open; when it is seen again the first word of the server tells it to look.
  if (typeof htmx !== "undefined") htmx.createEventSource = (url) => {
    const listeners = [];
    let source = null;
    const made = { onopen: null, onerror: null };
    const shut = () => { source?.close(); source = null; };
    const open = () => {
      source = new EventSource(url);
      source.onopen = (event) => made.onopen?.(event);
      source.onerror = (event) => {
        if (source?.readyState === EventSource.CLOSED) document.removeEventListener("visibilitychange", seen);
        made.onerror?.(event);
      };
      for (const [name, tell] of listeners) source.addEventListener(name, tell);
    };
    const seen = () => {
      if (document.hidden) shut();
      else if (!source) open();
    };
    Object.defineProperty(made, "readyState", { get: () => (source ? source.readyState : EventSource.CONNECTING) });
    made.addEventListener = (name, tell) => { listeners.push([name, tell]); source?.addEventListener(name, tell); };
    made.removeEventListener = (name, tell) => {
      listeners.splice(0, listeners.length, ...listeners.filter((each) => each[0] !== name || each[1] !== tell));
      source?.removeEventListener(name, tell);
    };
    made.close = () => { document.removeEventListener("visibilitychange", seen); shut(); };
    document.addEventListener("visibilitychange", seen);
    seen();
    return made;
  };

  document.body.addEventListener("htmx:configRequest", (event) => {
    event.detail.headers["genba-csrf"] = document.body.dataset.csrf;
    const digest = event.detail.elt.dataset.digest;
    if (digest) event.detail.headers["genba-digest"] = digest;
  });
  document.body.addEventListener("htmx:afterRequest", (event) => {
    const answer = event.detail.xhr;
    const digest = answer && answer.getResponseHeader("genba-digest");
    if (digest) event.detail.elt.dataset.digest = digest;
    const needs = answer && answer.getResponseHeader("genba-needs");
    const shown = $("needs");
    if (needs !== null && needs !== undefined && shown) {
      shown.textContent = needs;
      shown.hidden = needs === "0";
    }
  });

  // ── what a button has done ──────────────────────────────────────────────────────────────────────────────────────
  const show = (kind, message) => {
    const box = document.createElement("div");
    box.className = `message ${kind}`;
    const sentence = document.createElement("p");
    sentence.textContent = message.sentence;
    box.append(sentence);
    for (const more of [message.unchanged, message.hint && `next: ${message.hint}`]) {
      if (!more) continue;
      const next = document.createElement("p");
      next.className = "hint";
      next.textContent = more;
      box.append(next);
    }
    const close = document.createElement("button");
    close.type = "button";
    close.className = "plain";
    close.textContent = "close";
    close.addEventListener("click", () => box.remove());
    box.append(close);
    $("messages").replaceChildren(box);
    if (kind === "message") setTimeout(() => box.remove(), 8000);
  };
  document.body.addEventListener("message", (event) => show("message", event.detail));
  document.body.addEventListener("refused", (event) => show("refused", event.detail));
  document.body.addEventListener("htmx:sendError", () => show("refused", { sentence: "The server does not answer.", hint: "genba serve" }));
  // The page may be drawn again while a form is under way: its button stays as it is, unless it has become another one.
  const underWay = new Map();
  const hold = (form, held) => {
    const button = form.querySelector("button[type=submit]");
    if (button) button.disabled = held;
  };
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    const form = event.detail.elt;
    if (!form.matches("form")) return;
    underWay.set(form, form.getAttribute("hx-post"));
    hold(form, true);
  });
  document.body.addEventListener("htmx:afterSwap", () => {
    for (const [form, address] of underWay) if (form.getAttribute("hx-post") === address) hold(form, true);
  });
  document.body.addEventListener("htmx:afterRequest", (event) => {
    const form = event.detail.requestConfig?.elt;
    if (!form?.matches("form")) return;
    const isStill = underWay.get(form) === form.getAttribute("hx-post");
    underWay.delete(form);
    if (!isStill) return;
    hold(form, false);
    if (event.detail.successful) form.reset();
  });

  // ── copying ─────────────────────────────────────────────────────────────────────────────────────────────────────
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const held = document.createElement("textarea");
      held.value = text;
      document.body.append(held);
      held.select();
      document.execCommand("copy");
      held.remove();
    }
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await copy(button.dataset.copy);
    const before = button.textContent;
    button.textContent = "copied";
    setTimeout(() => (button.textContent = before), 1200);
  });

  // ── the theme ───────────────────────────────────────────────────────────────────────────────────────────────────
  const turn = () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("genba-theme", root.dataset.theme);
  };
  $("theme")?.addEventListener("click", turn);
  // What a drawing needs, which cannot read the style sheet: a colour by its name, as it is in the theme of now.
  window.colourNow = (name) => {
    const probe = document.createElement("i");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };

  // ── where one is, where the navigation is wider than the screen ─────────────────────────────────────────────────
  const pages = document.querySelector(".top nav");
  const reveal = (link) => link?.scrollIntoView({ block: "nearest", inline: "nearest" });
  reveal(pages?.querySelector("[aria-current]"));
  pages?.addEventListener("focusin", (event) => reveal(event.target));

  // ── keys ────────────────────────────────────────────────────────────────────────────────────────────────────────
  const help = $("help");
  $("keys")?.addEventListener("click", () => help.showModal());
  const places = { f: "/", b: "/board", a: "/approvals", w: "/workers", q: "/queue", g: "/graph", n: "/agents", c: "/cost" };
  let going = -Infinity;
  const step = (by) => {
    const entries = [...document.querySelectorAll("[data-entry]")];
    const at = entries.indexOf(document.activeElement);
    const next = entries[Math.min(entries.length - 1, Math.max(0, at + by))];
    next?.focus();
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help?.open) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    const soon = event.timeStamp - going < 1500;
    going = -Infinity;
    if (soon && places[event.key]) location.assign(places[event.key]);
    else if (event.key === "g") going = event.timeStamp;
    else if (event.key === "?") help.showModal();
    else if (event.key === "t") turn();
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "/") {
      const search = document.querySelector("input[type=search]");
      if (!search) return;
      event.preventDefault();
      search.focus();
    }
  });

  // ── coming in: the token stands behind the #, which no browser sends anywhere ───────────────────────────────────
  const form = $("enter");
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (form && token) {
    history.replaceState(null, "", "/enter");
    form.querySelector("[name=token]").value = token;
    form.submit();
  }
})();
