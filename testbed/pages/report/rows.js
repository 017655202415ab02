// Many rows under one time axis, in groups with titles.
"use strict";
globalThis.Testbed ??= {};
(() => {
  const { svg } = Testbed;
  const TITLE = 24;
  const GAP = 6;
  const NOTE_FROM = 420;
  // A few rows more are shown rather than hidden.
  const SPARE = 4;

  /**
   * A chart of rows in `container`, following `view` (see frame.js).
   *
   * `chart`: {label, faults, hint, left, right, row (height in pixels), groups: [{title, note, rows: [{label, end}]}],
   * most (rows of a group that are shown at first), drawRow(layer, row, {x, top, height, view}),
   * drawGroup(layer, group, {x, top, bottom, view}), read(row, t, group)}.
   * Returns {showAll(all)} and `hidden`: are there rows that are not shown at first.
   */
  Testbed.rowChart = (container, view, chart) => {
    let items = laidOut(chart, false);
    const frame = Testbed.frame(container, view, {
      ...chart,
      get height() {
        return items.height;
      },
      rows: () => items.rows.map((item) => item.top + chart.row / 2),
      draw: (layer, x, size, around) => {
        for (const group of items.groups) {
          const place = { x, view, top: group.top + TITLE, bottom: group.bottom };
          around.append(svg("text", { x: 4 - chart.left, y: group.top + 16, class: "row-title" }, group.title));
          const note = { x: size.width, y: group.top + 16, "text-anchor": "end", class: "row-note" };
          if (size.width > NOTE_FROM) around.append(svg("text", note, group.told));
          chart.drawGroup?.(layer, group, place);
        }
        for (const item of items.rows) drawRow(chart, item, { layer, around, x, size, view });
        chart.finish?.(layer);
      },
      read: (t, y) => {
        const item = y === null ? null : items.rows.find((one) => y >= one.top && y < one.top + chart.row);
        return item ? `${item.row.label}: ${chart.read(item.row, t, item.group)}` : "";
      },
    });
    return {
      hidden: chart.groups.some((group) => group.rows.length > shownOf(chart, group)),
      showAll: (all) => {
        items = laidOut(chart, all);
        frame.redraw();
      },
    };
  };

  const shownOf = (chart, group) => (group.rows.length <= chart.most + SPARE ? group.rows.length : chart.most);

  function laidOut(chart, all) {
    const rows = [];
    const groups = [];
    let top = 0;
    for (const group of chart.groups) {
      const shown = all ? group.rows : group.rows.slice(0, shownOf(chart, group));
      const more = group.rows.length - shown.length;
      const begin = top;
      top += TITLE;
      for (const row of shown) {
        rows.push({ row, group, top });
        top += chart.row;
      }
      const told = [group.note, more ? `${more} more rows` : null].filter(Boolean).join("; ");
      groups.push({ ...group, top: begin, bottom: top, told });
      top += GAP;
    }
    return { rows, groups, height: top };
  }

  function drawRow(chart, { row, group, top }, { layer, around, x, size, view }) {
    const middle = top + chart.row / 2 + 4;
    around.append(svg("text", { x: -8, y: middle, "text-anchor": "end", class: "row-label" }, row.label));
    if (row.end) around.append(svg("text", { x: size.width + 8, y: middle, class: "row-label" }, row.end));
    chart.drawRow(layer, row, { x, top, height: chart.row, view, group });
  }
})();
