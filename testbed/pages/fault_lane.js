// When which fault was on: bars with names above a plot, and bands across it.
"use strict";
globalThis.Testbed ??= {};
(() => {
  const { svg } = Testbed;
  const ROW = 18;
  const MOST_ROWS = 6;
  const LETTER = 6.2;

  const endOf = (fault, view) => fault.to ?? view.whole.to;

  /** The row of each fault: one a name while there is room, else the first row that is free at that time. */
  function rowsOf(faults, view) {
    const names = [...new Set(faults.map((fault) => fault.name))];
    if (names.length <= MOST_ROWS) return faults.map((fault) => names.indexOf(fault.name));
    const free = Array(MOST_ROWS).fill(-Infinity);
    return faults.map((fault) => {
      const found = free.findIndex((end) => end <= fault.from);
      const row = found < 0 ? MOST_ROWS - 1 : found;
      free[row] = Math.max(free[row], endOf(fault, view));
      return row;
    });
  }

  /**
   * For faults {name, from, to}, in seconds, `to` null where one never healed: {height of the bars,
   * bands(layer, x, width, plot height), bars(layer, x, width)}.
   */
  Testbed.faultLane = (faults, view) => {
    const rows = rowsOf(faults, view);
    const height = faults.length ? (Math.max(...rows) + 1) * ROW + 4 : 0;
    const inSight = (x, width) =>
      faults
        .map((fault, index) => ({ fault, row: rows[index], from: x(fault.from), to: x(endOf(fault, view)) }))
        .filter((bar) => bar.to >= 0 && bar.from <= width);
    return {
      height,
      bands: (layer, x, width, plot) => {
        for (const bar of inSight(x, width)) layer.append(block(bar, width, 0, plot, "fault-band"));
      },
      bars: (layer, x, width) => {
        const bars = inSight(x, width);
        for (const bar of bars) layer.append(block(bar, width, bar.row * ROW + 2, ROW - 4, "fault-bar"));
        label(layer, bars, width);
      },
    };
  };

  function block(bar, width, y, height, name) {
    const left = Math.max(bar.from, 0);
    return svg("rect", { x: left, width: Math.max(Math.min(bar.to, width) - left, 1.5), y, height, class: name });
  }

  /** A name stands right of the last bar of a row of bars so close that nothing else has room there. */
  function label(layer, bars, width) {
    const byRow = new Map();
    for (const bar of [...bars].sort((one, other) => one.from - other.from)) {
      if (!byRow.has(bar.row)) byRow.set(bar.row, []);
      byRow.get(bar.row).push(bar);
    }
    for (const row of byRow.values()) {
      row.forEach((bar, index) => place(layer, bar, row[index + 1], row[index - 1], width));
    }
  }

  function place(layer, bar, next, before, width) {
    const room = bar.fault.name.length * LETTER + 6;
    const text = (at, anchor, inside) => {
      const look = { "text-anchor": anchor, class: inside ? "fault-name inside" : "fault-name" };
      layer.append(svg("text", { x: at, y: bar.row * ROW + 13, ...look }, bar.fault.name));
    };
    const left = Math.max(bar.from, 0);
    if (Math.min(bar.to, width) - left >= room) return text(left + 4, "start", true);
    if (Math.min(next ? next.from : width, width) - bar.to >= room) return text(bar.to + 4, "start", false);
    if (!before && left >= room) text(left - 4, "end", false);
  }
})();
