// The state of every path that ever left GOOD, over time. A state has a colour, a height and a pattern.
"use strict";
globalThis.Testbed ??= {};
(() => {
  const { svg, html } = Testbed;
  const ROW = 15;
  const MOST = 12;
  const NO_STALL = "No QP stalled for longer than 2 T, or 20 ms if that is longer.";
  // name, share of the row's height, pattern
  const STATES = {
    G: ["GOOD: in use (port: up; mapper: not accused)", 0.16, null],
    S: ["SKIP: rests after congestion (port: carrier, no answer yet)", 0.5, "M0 4L4 0"],
    M: ["to and fro between GOOD and SKIP", 0.35, "M0 4L4 0M0 0L4 4"],
    B: ["ASSUMED_BAD: given up (port: down)", 0.8, null],
    D: ["DENIED: may not be used", 0.8, "M2 0V4"],
    A: ["accused by the mapper", 0.5, "M0 2H4M2 0V4"],
    P: ["QP: delivers, or has nothing to", 0.16, null],
    W: ["QP: stalled, with data to deliver", 0.8, "M0 2H4"],
  };

  /** `timelines`: as timelines.py makes them. */
  Testbed.timelineChart = (container, view, timelines, faults) => {
    const rows = timelines.groups.reduce((sum, group) => sum + group.rows.length, 0);
    if (!rows) {
      container.append(html("p", {}, timelines.all ? `All ${timelines.all} paths stayed GOOD in the whole run.` : NO_STALL));
      return;
    }
    const used = new Set(timelines.groups.flatMap((group) => group.rows.flatMap((row) => [row.first, ...row.s])));
    const button = html("button", { type: "button", class: "screen-only" });
    container.append(legend(used), button);
    const chart = Testbed.rowChart(container, view, {
      label: timelines.all ? "States of paths" : "When QPs stalled",
      faults,
      groups: timelines.groups.map((group) => ({ ...group, note: note(group) })),
      ...Testbed.sides,
      row: ROW,
      most: MOST,
      hint: "Enter, or a click on a fault\u2019s bar, looks closer at that fault; again, at its injection.",
      drawRow,
      drawGroup: (layer, group, place) => {
        const own = faults.filter((fault) => fault.name === group.title);
        marks(layer, own, place);
      },
      read: (row, t) => STATES[stateAt(row, t)][0].split(":")[0],
    });
    container.append(html("figcaption", {}, words(timelines, rows, faults.length > 0)));
    unfold(button, chart, rows);
  };

  function unfold(button, chart, rows) {
    let all = false;
    button.hidden = !chart.hidden;
    button.textContent = `Show all ${rows} rows`;
    button.addEventListener("click", () => {
      all = !all;
      button.textContent = all ? "Show fewer rows" : `Show all ${rows} rows`;
      chart.showAll(all);
    });
  }

  const note = (group) => {
    const given = group.rows.reduce((sum, row) => sum + [...row.s].filter((state) => "BW".includes(state)).length, 0);
    return given ? `${group.what} ${given === 1 ? "once" : `${given} times`}` : "";
  };

  function words(timelines, rows, marked) {
    const short = Testbed.duration(timelines.grain);
    const grain = timelines.grain ? ` Stays in GOOD and SKIP of less than ${short} are drawn as one.` : "";
    const left = timelines.left_out ? ` ${timelines.left_out} rows with very many changes are left out.` : "";
    const paths = rows - timelines.mapped - timelines.ports - timelines.stalls;
    const changed = `${paths} of ${timelines.all} paths left GOOD: sender, peer, ${timelines.named} of each.`;
    const ports = timelines.ports ? " Of a NIC port: what its own host saw, and what it told its peers." : "";
    const ours = paths ? changed : `All ${timelines.all} paths stayed GOOD.`;
    const still = timelines.stalls ? " A QP: sender and receiver; it is stalled when nothing is acknowledged for 2 T." : "";
    const told = `${timelines.all ? ours : ""}${still || (timelines.all ? "" : NO_STALL)}`.trim();
    return `${told}${ports}${marked ? " Upright lines: injection, and dashed the heal." : ""}${grain}${left}`;
  }

  function stateAt(row, t) {
    let found = row.first;
    for (let index = 0; index < row.t.length && row.t[index] <= t; index++) found = row.s[index];
    return found;
  }

  function drawRow(layer, row, { x, top, height, view }) {
    const shapes = new Map();
    const stay = (state, from, to) => {
      if (to < view.from || from > view.to) return;
      const [left, right] = [x(Math.max(from, view.from)), x(Math.min(to, view.to))];
      const tall = STATES[state][1] * height;
      const corner = `${left.toFixed(1)} ${(top + (height - tall) / 2).toFixed(1)}`;
      const box = `M${corner}H${Math.max(right, left + 1).toFixed(1)}v${tall.toFixed(1)}H${left.toFixed(1)}Z`;
      shapes.set(state, (shapes.get(state) ?? "") + box);
    };
    let [state, since] = [row.first, view.whole.from];
    row.t.forEach((t, index) => {
      stay(state, since, t);
      [state, since] = [row.s[index], t];
    });
    stay(state, since, view.whole.to);
    for (const [name, d] of shapes) layer.append(...filled(name, { d }));
  }

  /** A shape in the colour of a state, and again with its pattern. */
  function filled(state, shape) {
    const pattern = STATES[state][2];
    const tag = shape.d ? "path" : "rect";
    return [
      svg(tag, { ...shape, class: `ev-${state}` }),
      ...(pattern ? [svg(tag, { ...shape, fill: `url(#pattern-${state})` })] : []),
    ];
  }

  function marks(layer, faults, { x, top, bottom }) {
    for (const fault of faults) {
      layer.append(svg("line", { x1: x(fault.from), x2: x(fault.from), y1: top, y2: bottom, class: "injected" }));
      if (fault.to !== null) {
        layer.append(svg("line", { x1: x(fault.to), x2: x(fault.to), y1: top, y2: bottom, class: "healed" }));
      }
    }
  }

  function legend(used) {
    const defs = svg("defs", {});
    for (const [state, [, , pattern]] of Object.entries(STATES)) {
      const tile = { id: `pattern-${state}`, width: 4, height: 4, patternUnits: "userSpaceOnUse" };
      if (pattern) defs.append(svg("pattern", tile, svg("path", { d: pattern, class: "pattern" })));
    }
    const items = Object.entries(STATES)
      .filter(([state]) => used.has(state))
      .map(([state, [name, share]]) => {
        const box = { x: 0, y: 6 - 6 * share, width: 34, height: 12 * share };
        return html("li", {}, svg("svg", { viewBox: "0 0 34 12", "aria-hidden": true }, ...filled(state, box)), name);
      });
    const patterns = svg("svg", { width: 0, height: 0, style: "position:absolute", "aria-hidden": true }, defs);
    return html("ul", { class: "legend" }, patterns, ...items);
  }
})();
