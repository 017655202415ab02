// Reading off the charts of a plan: a line in all of them that have the same axis, by pointer and keyboard.
"use strict";
(() => {
  const { svg, number } = Testbed;
  const { charts, plot } = JSON.parse(document.getElementById("data").textContent);
  const STEPS = 60;

  const places = [...document.querySelectorAll("figure.curve")].map((figure, index) => {
    const drawing = figure.querySelector("svg");
    const cursor = svg("line", { y1: 20, y2: 186, class: "cursor", visibility: "hidden" });
    drawing.append(cursor);
    return { figure, drawing, cursor, readout: figure.querySelector(".readout"), chart: charts[index] };
  });

  /** The value of the axis at a share of the plot, and back. */
  const valueAt = ({ low, high }, share) => low * (high / low) ** Math.min(Math.max(share, 0), 1);
  const shareOf = ({ low, high }, value) => Math.log(value / low) / Math.log(high / low);

  /** Which is the last point of a line up to a value; -1 before it begins and where it has ended. */
  function lastUpTo(points, value, high) {
    const end = points.at(-1);
    if (!end || (value > end[0] && end[0] < high)) return -1;
    return points.findLastIndex(([x]) => x <= value);
  }

  function said({ points, band }, unit, index) {
    if (index < 0) return "none";
    const range = band.length ? ` (${band[index].map(number).join("-")})` : "";
    return `${number(points[index][1])}${range} ${unit}`.trim();
  }

  /** The sample nearest to a value; where lines are known everywhere, the value. */
  function sampled({ samples }, value) {
    const away = (one) => Math.abs(Math.log(one / value));
    return samples.reduce((best, one) => (away(one) < away(best) ? one : best), samples[0] ?? value);
  }

  function told({ across, unit, lines, high }, value) {
    const rows = lines.map((line) => `${line.name}: ${said(line, unit, lastUpTo(line.points, value, high))}`);
    const at = value < 1000 ? number(value) : Math.round(value).toLocaleString("en");
    return [`${at} ${across}`, ...rows].join("\n");
  }

  /** Read off `value` in every chart with the axis of `like`; null: what was asked for. */
  function read(like, value) {
    const alike = ({ chart }) => ["across", "low", "high"].every((key) => chart[key] === like[key]);
    for (const { chart, cursor, readout } of places.filter(alike)) {
      cursor.setAttribute("visibility", value === null ? "hidden" : "visible");
      readout.textContent = told(chart, value ?? sampled(chart, chart.first ?? chart.high));
      if (value === null) continue;
      const x = plot.left + shareOf(chart, value) * (plot.right - plot.left);
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
    }
  }

  for (const chart of charts) read(chart, null);
  for (const { figure, drawing, readout, chart } of places) {
    const { samples } = chart;
    let value = null;
    const to = (next) => {
      value = next === null ? null : sampled(chart, next);
      read(chart, value);
    };
    const step = (way) => {
      const from = value ?? sampled(chart, chart.first ?? valueAt(chart, 0.5));
      const index = samples.indexOf(from) + way;
      to(samples.length ? samples[index] ?? from : valueAt(chart, shareOf(chart, from) + way / STEPS));
    };
    const keys = {
      ArrowLeft: () => step(-1),
      ArrowRight: () => step(1),
      Home: () => to(chart.low),
      End: () => to(chart.high),
      Escape: () => to(null),
    };
    figure.addEventListener("pointermove", (event) => {
      const box = drawing.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * drawing.viewBox.baseVal.width;
      to(valueAt(chart, (x - plot.left) / (plot.right - plot.left)));
    });
    figure.addEventListener("pointerleave", () => figure.matches(":focus") || to(null));
    figure.addEventListener("focus", () => readout.setAttribute("aria-live", "polite"));
    figure.addEventListener("blur", () => {
      readout.removeAttribute("aria-live");
      to(null);
    });
    figure.addEventListener("keydown", (event) => {
      if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      keys[event.key]();
    });
  }
})();
