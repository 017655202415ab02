"use strict";
// The fabric: cables as wide as they are busy, parts in the state they are in, one of them chosen.
(() => {
  const THIN = 1.3;
  const FULL = 6;
  const STATES = ["broken", "lossy", "slow", "silent"];
  const STEP = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };  // along a row, and to another
  const SVG = "http://www.w3.org/2000/svg";

  let parts = new Map();
  let ports = new Map();
  let rows = [];
  let chosen = "";
  let halos = {};
  let frame = null;
  const listeners = [];

  function show(scene) {
    const parsed = new DOMParser().parseFromString(scene.svg, "image/svg+xml").documentElement;
    const drawing = document.importNode(parsed, true);
    drawing.setAttribute("role", "group");
    drawing.removeAttribute("width");
    drawing.removeAttribute("height");
    Live.byId("drawing").replaceChildren(drawing);
    parts = new Map();
    ports = new Map();
    frame = null;
    halos = { selected: halo(drawing, "halo"), focus: halo(drawing, "halo focus") };
    const switches = new Set(scene.switches);
    for (const element of drawing.querySelectorAll("[data-node]")) {
      const name = element.dataset.node;
      if (switches.has(name)) add(name, element, "switch", element);
      else ports.set(name, [...element.querySelectorAll("rect")].slice(1).map((rect) => (rect.classList.add("port"), rect)));
    }
    for (const element of drawing.querySelectorAll("[data-link]")) {
      add(element.dataset.link, element, "link", hit(element));
    }
    const first = parts.values().next().value;
    if (first) first.element.setAttribute("tabindex", "0");
    layOut();
    drawing.addEventListener("keydown", onKey);
    choose("");
  }

  function halo(drawing, name) {
    const made = document.createElementNS(SVG, "path");
    made.setAttribute("class", name);
    drawing.insertBefore(made, drawing.firstChild);
    return made;
  }

  /** A cable is too thin for a mouse: what is hit is a wide one that is not seen. */
  function hit(path) {
    const made = document.createElementNS(SVG, "path");
    made.setAttribute("class", "hit");
    made.setAttribute("d", path.getAttribute("d"));
    path.parentNode.appendChild(made);
    return made;
  }

  function add(name, element, kind, target) {
    element.classList.add("part");
    element.setAttribute("tabindex", "-1");
    element.setAttribute("role", "button");
    element.setAttribute("aria-label", `${kind} ${name}`);
    parts.set(name, { name, element, kind });
    target.addEventListener("click", () => {
      reach(name);
      choose(name);
    });
    const title = document.createElementNS(SVG, "title");
    title.textContent = `${kind} ${name}`;
    target.appendChild(title);
    element.addEventListener("focus", () => {
      element.setAttribute("aria-label", words(name));
      if (kind === "link" && element.matches(":focus-visible")) halos.focus.setAttribute("d", element.getAttribute("d"));
    });
    element.addEventListener("blur", () => halos.focus.removeAttribute("d"));
  }

  /** One part at a time is in the order of Tab; arrows go to the others. */
  function reach(name) {
    for (const part of parts.values()) {
      const turn = part.name === name ? "0" : "-1";
      if (part.element.getAttribute("tabindex") !== turn) part.element.setAttribute("tabindex", turn);
    }
    parts.get(name).element.focus();
  }

  function onKey(event) {
    const part = parts.get(event.target.dataset.node || event.target.dataset.link || "");
    if (!part) return;
    if (event.key === "Enter" || event.key === " ") {
      choose(part.name);
    } else if (STEP[event.key]) {
      const next = beside(part, STEP[event.key]);
      if (next) reach(next.name);
    } else {
      return;
    }
    event.preventDefault();
  }

  /** Rows as they are drawn, the highest tier on top, each from left to right: every part is in one. */
  function layOut() {
    const found = new Map();
    for (const part of parts.values()) {
      const box = part.element.getBBox();
      part.x = box.x + box.width / 2;
      const y = Math.round(box.y + box.height / 2);
      found.set(y, [...(found.get(y) || []), part]);
    }
    rows = [...found].sort(([one], [other]) => one - other).map(([, row]) => row.sort((a, b) => a.x - b.x));
  }

  function beside(part, [dx, dy]) {
    const turn = rows.findIndex((row) => row.includes(part));
    if (dx) return rows[turn][rows[turn].indexOf(part) + dx];
    const other = rows[turn + dy];
    return other && other.reduce((best, each) => (Math.abs(each.x - part.x) < Math.abs(best.x - part.x) ? each : best));
  }

  function choose(name) {
    const before = parts.get(chosen);
    if (before) {
      before.element.classList.remove("selected");
      before.element.setAttribute("aria-pressed", "false");
    }
    chosen = parts.has(name) ? name : "";
    const part = parts.get(chosen);
    halos.selected.removeAttribute("d");
    if (part) {
      part.element.classList.add("selected");
      part.element.setAttribute("aria-pressed", "true");
      if (part.kind === "link") halos.selected.setAttribute("d", part.element.getAttribute("d"));
    }
    for (const listener of listeners) listener(name);
  }

  function update(next) {
    frame = next;
    for (const [name, link] of Object.entries(next.links)) {
      const part = parts.get(name);
      if (!part) continue;
      const width = (THIN + (FULL - THIN) * Math.min(1, Math.max(...link.load))).toFixed(1);
      if (part.element.getAttribute("stroke-width") !== width) part.element.setAttribute("stroke-width", width);
      mark(part.element, link.state);
    }
    for (const part of parts.values()) {
      const said = next.accused[part.name];
      part.element.classList.toggle("accused", Boolean(said));
      part.element.classList.toggle("denied", Boolean(said && said.denied));
      if (part.kind === "switch") mark(part.element, next.nodes[part.name] || "");
    }
    for (const [name, host] of Object.entries(next.hosts)) {
      (ports.get(name) || []).forEach((rect, plane) => {
        rect.classList.toggle("down", host.ports[plane] === "DOWN");
        rect.classList.toggle("rising", host.ports[plane] === "RISING");
      });
    }
  }

  function mark(element, state) {
    for (const each of STATES) {
      if (element.classList.contains(each) !== (each === state)) element.classList.toggle(each, each === state);
    }
  }

  /** What there is to say of a part now. */
  function words(name) {
    const part = parts.get(name);
    const kind = part ? part.kind : name.includes(":") ? "link" : "switch";
    return `${kind} ${name}, ${state(name)}`;
  }

  function state(name) {
    if (!frame) return "not known yet";
    const link = frame.links[name];
    if (!link) return `${frame.nodes[name] || "up"}${accused(name)}`;
    return `${link.state}${accused(name)}, ${Live.percent(link.load[0])} away from the hosts, ${Live.percent(link.load[1])} towards them`;
  }

  /** What the mapper says of a part. */
  function accused(name) {
    const said = frame.accused[name];
    if (!said) return "";
    return `${said.loss ? `, accused of losing ${Live.percent(said.loss)}` : ""}${said.denied ? ", denied" : ""}`;
  }

  Live.drawing = { show, update, choose, state, chosen: () => chosen, onChoose: (listener) => listeners.push(listener) };
})();
