// Lines over time, with their names at their ends.
"use strict";
globalThis.Testbed ??= {};
(() => {
  const { svg, ticks, number } = Testbed;
  const LABEL = 13;
  const COLOURS = 7;
  const MOST_READ = 8;
  const LAST = 20;

  /** How a series is drawn: a colour of the page's palette, and from the eighth on a broken line. */
  const styleOf = (series, index) => ({
    stroke: series.colour ?? `var(--plane-${index % COLOURS})`,
    "stroke-dasharray": series.dash ?? ["", "6 3", "2 3"][Math.floor(index / COLOURS) % 3],
  });

  const timeOf = (series, index) => (series.t ? series.t[index] : series.from + index * series.grain);

  /** The last value that began by `t`; null where nothing is known. */
  function valueAt(series, t) {
    if (!series.v.length) return null;
    let low = 0;
    let high = series.v.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (timeOf(series, middle) <= t) low = middle;
      else high = middle - 1;
    }
    const end = series.t ? series.t[low + 1] ?? series.to ?? Infinity : timeOf(series, low + 1);
    return timeOf(series, low) <= t && t <= end ? series.v[low] : null;
  }

  /**
   * A chart of lines in `container`, following `view` (see frame.js).
   *
   * `chart`: {label, unit, faults, height, top (least end of the y axis), limit: {value, label} (a line across),
   * series: [{name, v: [number or null], and either from and grain (s) of even stretches, or t: [s] and to; lo, hi: the
   * least and greatest in each stretch where v is the mean of several; colour, dash}]}. A value holds for its stretch.
   * Returns {show(chart)}: show other series.
   */
  Testbed.lineChart = (container, view, first) => {
    let chart = first;
    let scale = null;
    const frame = Testbed.frame(container, view, {
      ...first,
      height: first.height ?? 200,
      right: first.right ?? 84,
      above: 20,
      draw: (layer, x, size, around) => {
        scale = yScale(chart, size.height);
        yAxis(around, scale, chart.unit, size);
        const place = { x, y: scale.y, view };
        chart.series.forEach((series, index) => line(layer, series, styleOf(series, index), place));
        names(around, chart.series, scale.y, view, size);
      },
      read: (t, y) => read(chart, t, y === null ? null : scale?.invert(y)),
    });
    return {
      show: (other) => {
        chart = { ...chart, ...other };
        frame.redraw();
      },
    };
  };

  function yScale(chart, height) {
    const values = chart.series.flatMap((series) => series.hi ?? series.v);
    const least = Math.max(chart.top ?? 0, chart.limit?.value ?? 0);
    const greatest = values.reduce((most, value) => Math.max(most, value ?? 0), least);
    const { at } = ticks(0, (greatest || 1) * 1.02, 4);
    const end = Math.max(at.at(-1), greatest * 1.04) || 1;
    const y = (value) => height - (value / end) * height;
    return { at, limit: chart.limit, y, invert: (pixel) => ((height - pixel) / height) * end };
  }

  function yAxis(layer, scale, unit, { width }) {
    for (const value of scale.at) {
      const y = scale.y(value);
      layer.append(svg("line", { x1: 0, x2: width, y1: y, y2: y, class: "grid" }));
      layer.append(svg("text", { x: -8, y: y + 4, "text-anchor": "end", class: "tick" }, number(value)));
    }
    layer.append(svg("text", { x: -8, y: -11, "text-anchor": "end", class: "tick unit" }, unit));
    if (scale.limit) {
      const y = scale.y(scale.limit.value);
      layer.append(svg("line", { x1: 0, x2: width, y1: y, y2: y, class: "limit" }));
      layer.append(svg("text", { x: width + 6, y: y + 4, class: "tick" }, scale.limit.label));
    }
  }

  /** Each value as a level over its stretch, so that no slope is invented. */
  function line(layer, series, style, { x, y, view }) {
    const level = [];
    const range = [];
    let open = false;
    series.v.forEach((value, index) => {
      const begins = timeOf(series, index);
      const ends = series.t ? series.t[index + 1] ?? series.to ?? begins : timeOf(series, index + 1);
      if (value === null || ends < view.from || begins > view.to) {
        open = false;
        return;
      }
      const [left, right] = [x(begins).toFixed(1), x(ends).toFixed(1)];
      level.push(`${open ? "L" : "M"}${left} ${y(value).toFixed(1)}H${right}`);
      if (series.lo) {
        const [low, high] = [series.lo[index], series.hi[index]].map((end) => y(end).toFixed(1));
        range.push(`M${left} ${low}H${right}V${high}H${left}Z`);
      }
      open = true;
    });
    if (range.length) layer.append(svg("path", { d: range.join(""), fill: style.stroke, class: "range" }));
    layer.append(svg("path", { d: level.join(""), class: "series", ...style }));
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

  /** Where there are many lines: with the pointer those nearest to it, by keyboard the first ones. */
  function read(chart, t, level) {
    const found = chart.series
      .map((series) => ({ name: series.name, value: valueAt(series, t) }))
      .filter((one) => one.value !== null);
    if (!found.length) return "not known";
    const away = (one) => Math.abs(one.value - level);
    if (level !== null && found.length > MOST_READ) found.sort((one, other) => away(one) - away(other));
    const shown = found.slice(0, MOST_READ).map((one) => `${one.name} ${number(one.value)}`);
    return `${shown.join(", ")}${found.length > MOST_READ ? ", \u2026" : ""} ${chart.unit}`;
  }
})();
