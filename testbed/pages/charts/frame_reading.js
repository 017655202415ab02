// The line that is read off in a chart, what is chosen in it, and in words what is there.
"use strict";
globalThis.Testbed ??= {};
(() => {
  const { svg, seconds } = Testbed;

  /** Bring them up to date in a frame (frame.js). */
  Testbed.frameReading = (frame) => {
    const { view, chart, overlay } = frame;
    if (!overlay) return;
    const { height } = frame.size();
    const isShown = view.cursor !== null && view.cursor >= view.from && view.cursor <= view.to;
    overlay.replaceChildren();
    if (frame.select) overlay.append(chosen(frame));
    if (isShown) {
      const at = frame.x(view.cursor);
      overlay.append(svg("line", { x1: at, x2: at, y1: 0, y2: height, class: "cursor" }));
      overlay.append(...row(frame));
    }
    const isHere = frame.plot.matches(":hover, :focus-within");
    frame.readout.textContent = isShown && isHere ? told(chart, view, frame.y) : chart.hint ?? "";
  };

  function chosen({ select, margin, size }) {
    const { width, height } = size();
    const [from, to] = select.map((pixel) => Math.min(Math.max(pixel - margin.left, 0), width));
    return svg("rect", { x: Math.min(from, to), width: Math.abs(to - from), y: 0, height, class: "selected" });
  }

  /** The row that is read off, as long as there are rows. */
  function row({ chart, y, size }) {
    const middle = y === null ? undefined : chart.rows?.().find((one) => Math.abs(one - y) <= chart.row / 2);
    if (middle === undefined) return [];
    const band = { x: 0, width: size().width, y: middle - chart.row / 2, height: chart.row };
    return [svg("rect", { ...band, class: "row-cursor" })];
  }

  function told(chart, view, y) {
    const on = (chart.faults ?? []).filter((one) => one.from <= view.cursor && view.cursor <= (one.to ?? Infinity));
    const names = [...new Set(on.map((one) => one.name))];
    const faults = names.length ? `on: ${names.join(", ")}` : null;
    const parts = [seconds(view.cursor, view.span() / 500), chart.read?.(view.cursor, y), faults];
    return parts.filter(Boolean).join("  \u00b7  ");
  }
})();
