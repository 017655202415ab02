// When which fault was on: bars with names above a plot, and bands across it.
"use strict";
globalThis.Testbed ??= {};
(() => {
  const { svg } = Testbed;
  const ROW = 18;
  const MOST_ROWS = 8;
  const LETTER = 6.2;
  const NEAR = 3;

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
   * bands(layer, x, width, plot height), bars(layer, x, width, margin left of it), at(x, width, pixel, y)}.
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
      // One shape, so that two faults at a time are no darker than one.
      bands: (layer, x, width, plot) => {
        const boxes = inSight(x, width).map((bar) => {
          const [left, wide] = span(bar, width);
          return `M${left} 0h${wide}v${plot}h${-wide}Z`;
        });
        if (boxes.length) layer.append(svg("path", { d: boxes.join(""), class: "fault-band" }));
      },
      /** The fault whose bar is at `pixel`, `y` from the top of the bars. */
      at: (x, width, pixel, y) => {
        const row = Math.floor(y / ROW);
        const near = inSight(x, width).filter((bar) => bar.from - NEAR <= pixel && pixel <= bar.to + NEAR);
        return near.find((bar) => bar.row === row)?.fault;
      },
      bars: (layer, x, width, margin) => {
        const bars = inSight(x, width);
        for (const bar of bars) {
          const [left, wide] = span(bar, width);
          const box = { x: left, width: wide, y: bar.row * ROW + 2, height: ROW - 4 };
          layer.append(svg("rect", { ...box, class: "fault-bar" }));
        }
        label(layer, bars, width, margin);
      },
    };
  };

  /** Left edge and width of what is in sight of a bar; the shortest can still be seen. */
  function span(bar, width) {
    const left = Math.max(bar.from, 0);
    return [left, Math.max(Math.min(bar.to, width) - left, 1.5)];
  }

  /** A name is in the first bar of its row that has room for it or beside it; else in the margin, where it fits. */
  function label(layer, bars, width, margin) {
    const byRow = new Map();
    for (const bar of [...bars].sort((one, other) => one.from - other.from)) {
      if (!byRow.has(bar.row)) byRow.set(bar.row, []);
      byRow.get(bar.row).push(bar);
    }
    for (const row of byRow.values()) {
      const named = new Set();
      row.forEach((bar, index) => {
        const { name } = bar.fault;
        if (!named.has(name) && place(layer, bar, row[index + 1], row[index - 1], width)) named.add(name);
      });
      const names = [...new Set(row.map((bar) => bar.fault.name))];
      if (!named.size && names.length === 1 && roomFor(names[0]) <= margin) write(layer, row[0], -6, "end", "");
    }
  }

  const roomFor = (name) => name.length * LETTER + 6;

  function write(layer, bar, x, anchor, place) {
    const look = { "text-anchor": anchor, class: `fault-name ${place}` };
    layer.append(svg("text", { x, y: bar.row * ROW + 13, ...look }, bar.fault.name));
    return true;
  }

  /** True where there was room. */
  function place(layer, bar, next, before, width) {
    const room = roomFor(bar.fault.name);
    const left = Math.max(bar.from, 0);
    const free = Math.min(next ? next.from : width, width);
    if (Math.min(bar.to, free) - left >= room) return write(layer, bar, left + 4, "start", "inside");
    if (free - bar.to >= room) return write(layer, bar, bar.to + 4, "start", "");
    return !before && left >= room && write(layer, bar, left - 4, "end", "");
  }
})();
