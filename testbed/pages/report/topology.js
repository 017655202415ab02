// The fabric at the moment that is read off in the charts, or with everything that was ever touched.
"use strict";
globalThis.Testbed ??= {};
(() => {
  const STATES = ["broken", "lossy", "slow"];

  /** `faults`: {occurrences, parts} as faults.py makes them. The slider and the charts move the same moment. */
  Testbed.topology = (figure, view, faults) => {
    const slider = document.getElementById("moment");
    if (!slider) return;
    const told = document.getElementById("moment-told");
    const off = document.getElementById("moment-off");
    const parts = new Map();
    for (const part of figure.querySelectorAll("[data-link], [data-node]")) {
      parts.set(part.dataset.link ?? part.dataset.node, { part, ever: part.getAttribute("class") ?? "" });
    }
    slider.max = view.whole.to;
    slider.addEventListener("input", () => view.point(Number(slider.value)));
    off.addEventListener("click", () => view.point(null));
    view.on(() => {
      const t = view.cursor;
      off.disabled = t === null;
      told.textContent = t === null ? "any time: all parts that were ever touched" : words(faults, t, view);
      if (t !== null) slider.value = t;
      const now = t === null ? null : statesAt(faults, t);
      for (const [name, { part, ever }] of parts) part.setAttribute("class", now ? now.get(name) ?? "" : ever);
    });
  };

  const onAt = (faults, t) => faults.occurrences.filter((one) => one.from <= t && t <= (one.to ?? Infinity));

  /** The gravest state of each part. */
  function statesAt(faults, t) {
    const found = new Map();
    for (const occurrence of onAt(faults, t)) {
      const [state, nodes, links] = faults.parts[occurrence.part];
      for (const name of STATES.includes(state) ? [...nodes, ...links] : []) {
        const known = found.get(name) ?? state;
        found.set(name, STATES.indexOf(known) < STATES.indexOf(state) ? known : state);
      }
    }
    return found;
  }

  function words(faults, t, view) {
    const names = [...new Set(onAt(faults, t).map((one) => one.name))];
    return `${Testbed.seconds(t, view.span() / 500)}: ${names.length ? names.join(", ") : "no fault is on"}`;
  }
})();
