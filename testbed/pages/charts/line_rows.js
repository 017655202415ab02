// Many lines, each in a row of its own: over each other nobody could tell them apart.
"use strict";
globalThis.Testbed ??= {};
(() => {
  const { svg, number } = Testbed;
  const { styleOf, timeOf, yScale, draw } = Testbed.series;
  const ROW = 36;
  const GAP = 10;

  /** The height of `count` rows. */
  Testbed.lineRowsHeight = (count) => count * (ROW + GAP);

  /** Draw the series of a chart (charts.js) in rows of one scale; returns which of them is at a height. */
  Testbed.lineRows = (chart, { layer, around, x, view, size }) => {
    const scale = yScale(chart, ROW);
    const top = scale.at.at(-1);
    const words = told(chart, top);
    around.append(svg("text", { x: size.width, y: -6, "text-anchor": "end", class: "tick" }, words));
    chart.series.forEach((series, index) => {
      const begin = index * (ROW + GAP) + GAP / 2;
      const y = (value) => begin + scale.y(value);
      frame(around, { size, y, top, limit: chart.limit });
      const middle = begin + ROW / 2 + 4;
      around.append(svg("text", { x: -8, y: middle, "text-anchor": "end", class: "name" }, series.name));
      around.append(svg("text", { x: size.width + 8, y: middle, class: "tick" }, meanOf(series, view)));
      draw(layer, series, { ...styleOf(series, 0), stroke: "var(--plane-0)" }, { x, y, view });
    });
    return (pixel) => chart.series[Math.floor(pixel / (ROW + GAP))];
  };

  function told({ unit, limit }, top) {
    const dotted = limit ? `, dotted ${number(limit.value)} (${limit.label})` : "";
    return `lines at 0 and ${number(top)} ${unit}${dotted}; right: mean of what is shown`;
  }

  function frame(layer, { size, y, top, limit }) {
    const across = (value, name) => {
      layer.append(svg("line", { x1: 0, x2: size.width, y1: y(value), y2: y(value), class: name }));
    };
    across(0, "grid");
    across(top, "grid");
    if (limit) across(limit.value, "limit");
  }

  function meanOf(series, view) {
    const inSight = (index) => timeOf(series, index) >= view.from && timeOf(series, index) <= view.to;
    const known = series.v.filter((value, index) => value !== null && inSight(index));
    return known.length ? number(known.reduce((sum, value) => sum + value, 0) / known.length) : "not known";
  }
})();
