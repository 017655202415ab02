// Where packets were lost, trimmed, marked and sent again, and when: a row a place.
"use strict";
globalThis.Testbed ??= {};
(() => {
  const { svg, html, duration } = Testbed;
  const ROW = 20;

  /** `losses`: as losses.py makes them. */
  Testbed.lossChart = (container, view, losses, faults) => {
    const none = losses.none.map((title) => title.split(",")[0]);
    if (losses.groups.length) draw(container, view, losses, faults);
    if (none.length) container.append(html("p", { class: "muted" }, `None counted: ${none.join("; ")}.`));
    if (losses.untimed) {
      const known = "what switch ports did is known in total at most, not over time.";
      container.append(html("p", { class: "muted" }, `There is no ports.csv in this folder: ${known}`));
    }
  };

  function draw(container, view, losses, faults) {
    const sources = [...new Set(losses.groups.map((group) => group.source))].join("; ");
    const groups = losses.groups.map((group) => {
      const total = group.rows.reduce((sum, row) => sum + row.total, 0);
      const highest = Math.max(0, ...group.rows.flatMap((row) => row.bins.map((bin) => bin[1])));
      const bar = highest ? `; highest bar: ${highest} in ${duration(losses.grain)}` : ", times not known";
      const rows = group.rows.map((row) => ({ ...row, end: String(row.total) }));
      return { ...group, rows, highest, note: `${total} in all${bar}` };
    });
    Testbed.rowChart(container, view, {
      label: "Losses, trims, marks and retransmissions by place",
      faults,
      groups,
      ...Testbed.sides,
      row: ROW,
      most: Infinity,
      hint: `The number at the end of a row is its total. From ${sources}.`,
      drawRow: (layer, row, place) => drawRow(layer, row, place, losses.grain),
      read: (row, t) => {
        if (!row.bins.length) return `${row.total} in all`;
        const bin = row.bins.find(([number]) => number === Math.floor(t / losses.grain));
        return `${bin ? bin[1] : 0} in ${duration(losses.grain)}`;
      },
    });
  }

  function drawRow(layer, row, { x, top, height, view, group }, grain) {
    const bottom = top + height - 1;
    layer.append(svg("line", { x1: x(view.from), x2: x(view.to), y1: bottom, y2: bottom, class: "row-line" }));
    let d = "";
    for (const [number, count] of row.bins) {
      const [from, to] = [number * grain, (number + 1) * grain];
      if (to < view.from || from > view.to) continue;
      const tall = Math.max(((height - 4) * count) / group.highest, 1);
      const right = Math.max(x(to), x(from) + 1);
      d += `M${x(from).toFixed(1)} ${bottom}V${(bottom - tall).toFixed(1)}H${right.toFixed(1)}V${bottom}Z`;
    }
    if (d) layer.append(svg("path", { d, class: "count" }));
  }
})();
