// One line over time: its look, its values, its drawing, and a scale for several.
"use strict";
globalThis.Testbed ??= {};
(() => {
  const { svg, ticks } = Testbed;
  const COLOURS = 7;

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

  /** {at (ticks), y(value), invert(pixel)} for all series of a chart (charts.js), from 0 to just over the greatest. */
  function yScale(chart, height) {
    const values = chart.series.flatMap((series) => series.hi ?? series.v);
    const least = Math.max(chart.top ?? 0, chart.limit?.value ?? 0);
    const greatest = values.reduce((most, value) => Math.max(most, value ?? 0), least);
    const { at } = ticks(0, (greatest || 1) * 1.02, 4);
    const end = Math.max(at.at(-1), greatest * 1.04) || 1;
    const y = (value) => height - (value / end) * height;
    return { at, y, invert: (pixel) => ((height - pixel) / height) * end };
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
    if (series.died !== undefined) death(layer, series, style, { x, y });
  }

  /** Where a job died: from the end of its last step along to a cross. */
  function death(layer, series, style, { x, y }) {
    const [end, at, level] = [x(series.to), x(series.died), y(series.v.at(-1) ?? 0)].map((pixel) => pixel.toFixed(1));
    const look = { class: "series", stroke: style.stroke };
    layer.append(svg("path", { ...look, d: `M${end} ${level}H${at}`, "stroke-dasharray": "1 3" }));
    layer.append(svg("path", { ...look, d: `M${at} ${level}m-5 -5l10 10m0 -10l-10 10` }));
  }

  Testbed.series = { styleOf, timeOf, valueAt, yScale, draw: line };
})();
