// What every chart over time has: the axis, faults, the line that is read off, zoom and pan by pointer and keyboard.
"use strict";
globalThis.Testbed ??= {};
(() => {
  const { svg, html, ticks } = Testbed;
  const AXIS = 34;
  const TICK_EVERY = 90;
  const LEAST_WIDTH = 40;
  const KEYS =
    "Arrow keys move the reading line, Shift and arrows pan, plus and minus zoom, Enter looks at the fault, 0 at all.";
  let count = 0;

  /**
   * A chart in `container` that follows `view`.
   *
   * `chart`: {label (for screen readers), height of the plot, faults, left, right, above (margins), lane (false: bands
   * without bars and names), hint (text where nothing is read off),
   * draw(layer, x, size, around) fills the plot, and what is beside it in `around`; x(t) gives pixels from the plot's
   * left edge, size is {width, height},
   * read(t, y): what is there in words, y in pixels from the top of the plot, or null by keyboard,
   * rows(): where there are rows, the middle of each, for up and down arrows, and row: their height,
   * steps: moments that left and right arrows go through, in order; without them it is a share of the view}.
   * Returns {redraw}, to be called when what `chart` draws has changed.
   */
  Testbed.frame = (container, view, chart) => {
    const frame = placed(container, view, chart);
    frame.redraw = () => {
      if (frame.width) draw(frame);
    };
    view.on((_, moved) => (moved ? frame.redraw() : Testbed.frameReading(frame)));
    new ResizeObserver(([entry]) => {
      const width = Math.floor(entry.contentRect.width);
      if (width && width !== frame.width) {
        frame.width = width;
        frame.redraw();
      }
    }).observe(frame.plot);
    Testbed.frameInput(frame);
    return { redraw: frame.redraw };
  };

  /** The elements, and how time and pixels correspond. `y`: the height that is read off, `select`: what is dragged. */
  function placed(container, view, chart) {
    const lane = Testbed.faultLane(chart.faults ?? [], view);
    const top = (chart.lane === false ? 0 : lane.height) + (chart.above ?? 8);
    const margin = { left: chart.left ?? 56, right: chart.right ?? 16, top };
    const plot = html("div", { class: "chart", tabindex: 0, role: "group", "aria-label": `${chart.label}. ${KEYS}` });
    const readout = html("p", { class: "readout", "aria-live": "polite" });
    container.append(html("div", { class: "moved" }, plot), readout);
    const frame = { view, chart, lane, margin, plot, readout, overlay: null, width: 0, y: null, select: null };
    const room = () => Math.max(frame.width - margin.left - margin.right, LEAST_WIDTH);
    frame.size = () => ({ width: room(), height: chart.height });
    frame.x = (t) => ((t - view.from) / view.span()) * frame.size().width;
    frame.timeAt = (pixel) => view.from + ((pixel - margin.left) / frame.size().width) * view.span();
    return frame;
  }

  function draw(frame) {
    const { view, chart, lane, margin, x } = frame;
    const { width, height } = frame.size();
    const total = margin.top + height + AXIS;
    const box = { viewBox: `0 0 ${frame.width} ${total}`, width: frame.width, height: total };
    const clip = `clip-${count++}`;
    const visible = svg("rect", { x: 0, y: -2, width, height: height + 4 });
    const faults = svg("g", { transform: `translate(${margin.left},0)` });
    const inside = svg("g", { "clip-path": `url(#${clip})` });
    const place = { transform: `translate(${margin.left},${margin.top})` };
    const around = svg("g", place);
    const beside = svg("g", {});
    if (chart.lane !== false) lane.bars(faults, x, width, margin.left);
    lane.bands(around, x, width, height);
    timeAxis(around, view, x, width, height);
    chart.draw(inside, x, { width, height }, beside);
    frame.overlay = svg("g", {});
    around.append(beside, inside, frame.overlay);
    const defs = svg("defs", {}, svg("clipPath", { id: clip }, visible));
    const whole = svg("svg", { ...box, "aria-hidden": true }, defs, faults, around);
    frame.plot.replaceChildren(whole, ...names(frame, svg("g", place, beside.cloneNode(true)), total));
    Testbed.frameReading(frame);
  }

  /**
   * What is left of the plot once more, where the chart is wider than its place: there it stays when that is moved.
   * Titles, which have their row for themselves, reach into the plot.
   */
  function names(frame, beside, height) {
    if (frame.width <= frame.plot.parentElement.clientWidth) return [];
    const { left } = frame.margin;
    const box = { viewBox: `0 0 ${left} ${height}`, width: left, height };
    const titles = beside.cloneNode(false);
    titles.append(...beside.querySelectorAll(".row-title"));
    const both = [svg("svg", box, beside), svg("svg", { ...box, class: "titles" }, titles)];
    return [html("div", { class: "names", "aria-hidden": true }, ...both)];
  }

  function timeAxis(layer, view, x, width, height) {
    const { word, per } = Testbed.timeUnit();
    const { step, at } = ticks(view.from * per, view.to * per, width / TICK_EVERY);
    layer.append(svg("line", { x1: 0, x2: width, y1: height, y2: height, class: "axis" }));
    const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
    for (const t of at) {
      const tick = x(t / per);
      layer.append(svg("line", { x1: tick, x2: tick, y1: height, y2: height + 4, class: "axis" }));
      const place = { x: tick, y: height + 16, "text-anchor": "middle", class: "tick" };
      layer.append(svg("text", place, t.toFixed(digits)));
    }
    const unit = { x: width, y: height + 29, "text-anchor": "end", class: "tick" };
    layer.append(svg("text", unit, `${word} since the workload\u2019s start`));
  }
})();
