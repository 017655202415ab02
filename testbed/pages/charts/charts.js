// Lines over time, with their names at their ends.
"use strict";
globalThis.Testbed ??= {};
(() => {
  const { svg, number } = Testbed;
  const { styleOf, timeOf, valueAt, yScale } = Testbed.series;
  const LABEL = 13;
  const MOST_READ = 8;
  const LAST = 20;

  /**
   * A chart of lines in `container`, following `view` (see frame.js).
   *
   * `chart`: {label, unit, faults, height, top (least end of the y axis), limit: {value, label} (a line across),
   * apart (true: each line in a row of its own),
   * series: [{name, v: [number or null], and either from and grain (s) of even stretches, or t: [s] and to; lo, hi: the
   * least and greatest in each stretch where v is the mean of several; died: when it ended for good; colour, dash}]}. A value holds for its stretch.
   * Returns {show(chart)}: show other series.
   */
  Testbed.lineChart = (container, view, first) => {
    let chart = first;
    let at = null;
    const frame = Testbed.frame(container, view, {
      ...first,
      get height() {
        return chart.apart ? Testbed.lineRowsHeight(chart.series.length) : first.height ?? 200;
      },
      right: first.right ?? 84,
      above: 20,
      draw: (layer, x, size, around) => {
        const place = { layer, around, x, view, size };
        at = chart.apart ? Testbed.lineRows(chart, place) : together(chart, place);
      },
      read: (t, y) => read(chart, t, y === null ? null : at?.(y)),
    });
    return {
      show: (other) => {
        chart = { ...chart, ...other };
        frame.redraw();
      },
    };
  };

  /** All lines over each other; returns which value is at a height. */
  function together(chart, { layer, around, x, view, size }) {
    const scale = yScale(chart, size.height);
    yAxis(around, scale, chart, size);
    chart.series.forEach((series, index) => {
      Testbed.series.draw(layer, series, styleOf(series, index), { x, y: scale.y, view });
    });
    names(around, chart.series, scale.y, view, size);
    return scale.invert;
  }

  function yAxis(layer, scale, { unit, limit }, { width }) {
    for (const value of scale.at) {
      const y = scale.y(value);
      layer.append(svg("line", { x1: 0, x2: width, y1: y, y2: y, class: "grid" }));
      layer.append(svg("text", { x: -8, y: y + 4, "text-anchor": "end", class: "tick" }, number(value)));
    }
    layer.append(svg("text", { x: -8, y: -11, "text-anchor": "end", class: "tick unit" }, unit));
    if (limit) {
      const y = scale.y(limit.value);
      layer.append(svg("line", { x1: 0, x2: width, y1: y, y2: y, class: "limit" }));
      layer.append(svg("text", { x: width + 6, y: y + 4, class: "tick" }, limit.label));
    }
  }

  /** Names right of the plot, about where each line ends, moved apart where they would touch. */
  function names(layer, series, y, view, size) {
    const spots = series
      .map((one, index) => ({ one, style: styleOf(one, index), at: y(atEnd(one, view)) }))
      .sort((one, other) => one.at - other.at);
    apart(spots, size.height);
    for (const { one, style, at } of spots) {
      layer.append(svg("line", { x1: size.width + 4, x2: size.width + 18, y1: at, y2: at, class: "series", ...style }));
      layer.append(svg("text", { x: size.width + 22, y: at + 4, class: "name" }, one.name));
    }
  }

  /** Downwards first, and back up where the last one would leave the plot. */
  function apart(spots, height) {
    for (let index = 1; index < spots.length; index++) {
      spots[index].at = Math.max(spots[index].at, spots[index - 1].at + LABEL);
    }
    let most = height;
    for (const spot of [...spots].reverse()) {
      spot.at = Math.min(spot.at, most);
      most = spot.at - LABEL;
    }
  }

  /** The mean of the last values in sight: a single one may be anywhere. */
  function atEnd(series, view) {
    const last = [];
    for (let index = series.v.length - 1; index >= 0 && last.length < LAST; index--) {
      if (series.v[index] !== null && timeOf(series, index) <= view.to) last.push(series.v[index]);
    }
    return last.reduce((sum, value) => sum + value, 0) / Math.max(last.length, 1);
  }

  /** What is there at `t`; `at`: the level or the series that the pointer is at. Of many lines those nearest to it. */
  function read(chart, t, at) {
    const found = (at?.name ? [at] : chart.series)
      .map((series) => ({ name: series.name, value: valueAt(series, t) }))
      .filter((one) => one.value !== null);
    if (!found.length) return "not known";
    const away = (one) => Math.abs(one.value - at);
    if (typeof at === "number" && found.length > MOST_READ) found.sort((one, other) => away(one) - away(other));
    const shown = found.slice(0, MOST_READ).map((one) => `${one.name} ${number(one.value)}`);
    return `${shown.join(", ")}${found.length > MOST_READ ? ", \u2026" : ""} ${chart.unit}`;
  }
})();
