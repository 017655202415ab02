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

  /** The last point of a line up to a value; undefined before it begins and where it has ended. */
  function pointAt(points, value, high) {
    const end = points.at(-1);
    if (!end || (value > end[0] && end[0] < high)) return undefined;
    return points.findLast(([x]) => x <= value);
  }

  function told({ across, unit, lines, high }, value) {
    const rows = lines.map(({ name, points }) => {
      const point = pointAt(points, value, high);
      return `${name}: ${point ? `${number(point[1])} ${unit}`.trim() : "none"}`;
    });
    const at = value < 100 ? number(value) : Math.round(value).toLocaleString("en");
    return [`${at} ${across}`, ...rows].join("\n");
  }

  /** Read off `value` in every chart over `across`; null: what was asked for. */
  function read(across, value) {
    for (const { chart, cursor, readout } of places.filter((one) => one.chart.across === across)) {
      cursor.setAttribute("visibility", value === null ? "hidden" : "visible");
      readout.textContent = told(chart, value ?? chart.first ?? chart.high);
      if (value === null) continue;
      const x = plot.left + shareOf(chart, value) * (plot.right - plot.left);
      cursor.setAttribute("x1", x);
      cursor.setAttribute("x2", x);
    }
  }

  for (const across of new Set(charts.map((chart) => chart.across))) read(across, null);
  for (const { figure, drawing, readout, chart } of places) {
    let share = null;
    const to = (next) => {
      share = next === null ? null : Math.min(Math.max(next, 0), 1);
      read(chart.across, share === null ? null : valueAt(chart, share));
    };
    const keys = {
      ArrowLeft: () => to((share ?? 0.5) - 1 / STEPS),
      ArrowRight: () => to((share ?? 0.5) + 1 / STEPS),
      Home: () => to(0),
      End: () => to(1),
      Escape: () => to(null),
    };
    figure.addEventListener("pointermove", (event) => {
      const box = drawing.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * drawing.viewBox.baseVal.width;
      to((x - plot.left) / (plot.right - plot.left));
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
