// What every chart over time has: the axis, faults, the line that is read off, zoom and pan by pointer and keyboard.
"use strict";
globalThis.Testbed ??= {};
(() => {
  const { svg, html, ticks, seconds } = Testbed;
  const AXIS = 34;
  const DRAGGED = 5;
  const KEYS =
    "Arrow keys move the reading line, Shift and arrows pan, plus and minus zoom, Enter looks at the fault, 0 at all.";

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
    const lane = Testbed.faultLane(chart.faults ?? [], view);
    const top = (chart.lane === false ? 0 : lane.height) + (chart.above ?? 8);
    const margin = { left: chart.left ?? 56, right: chart.right ?? 16, top };
    const plot = html("div", { class: "chart", tabindex: 0, role: "group", "aria-label": `${chart.label}. ${KEYS}` });
    const readout = html("p", { class: "readout", "aria-live": "polite" });
    container.append(plot, readout);
    const state = { width: 0, y: null, select: null };
    const size = () => ({ width: Math.max(state.width - margin.left - margin.right, 40), height: chart.height });
    const x = (t) => ((t - view.from) / view.span()) * size().width;
    const timeAt = (pixel) => view.from + ((pixel - margin.left) / size().width) * view.span();

    let overlay = null;
    const redraw = () => {
      if (!state.width) return;
      const { width, height } = size();
      const total = margin.top + height + AXIS;
      const box = { viewBox: `0 0 ${state.width} ${total}`, width: state.width, height: total };
      const root = svg("svg", { ...box, "aria-hidden": true });
      const clip = `clip-${Testbed.frame.count++}`;
      const visible = svg("rect", { x: 0, y: -2, width, height: height + 4 });
      root.append(svg("defs", {}, svg("clipPath", { id: clip }, visible)));
      const faults = svg("g", { transform: `translate(${margin.left},0)` });
      if (chart.lane !== false) lane.bars(faults, x, width);
      const inside = svg("g", { "clip-path": `url(#${clip})` });
      const around = svg("g", { transform: `translate(${margin.left},${margin.top})` });
      lane.bands(around, x, width, height);
      timeAxis(around, view, x, width, height);
      chart.draw(inside, x, { width, height }, around);
      overlay = svg("g", {});
      around.append(inside, overlay);
      root.append(faults, around);
      plot.replaceChildren(root);
      point();
    };
    const point = () => {
      if (!overlay) return;
      const { width, height } = size();
      overlay.replaceChildren();
      if (state.select) {
        const [from, to] = state.select.map((pixel) => Math.min(Math.max(pixel - margin.left, 0), width));
        const across = { x: Math.min(from, to), width: Math.abs(to - from) };
        overlay.append(svg("rect", { ...across, y: 0, height, class: "selected" }));
      }
      const shown = view.cursor !== null && view.cursor >= view.from && view.cursor <= view.to;
      if (shown) {
        const at = x(view.cursor);
        overlay.append(svg("line", { x1: at, x2: at, y1: 0, y2: height, class: "cursor" }));
      }
      const row = chart.rows?.().find((y) => Math.abs(y - state.y) <= chart.row / 2);
      if (shown && row && state.y !== null) {
        const band = { x: 0, width, y: row - chart.row / 2, height: chart.row };
        overlay.append(svg("rect", { ...band, class: "row-cursor" }));
      }
      const isHere = plot.matches(":hover, :focus-within");
      readout.textContent = shown && isHere ? told(chart, view, state.y) : chart.hint ?? "";
    };

    view.on((_, moved) => (moved ? redraw() : point()));
    new ResizeObserver(([entry]) => {
      const width = Math.floor(entry.contentRect.width);
      if (width && width !== state.width) {
        state.width = width;
        redraw();
      }
    }).observe(plot);
    const faultAt = (pixel, y) => lane.at(x, size().width, pixel - margin.left, y);
    listenToPointer(plot, view, state, { timeAt, point, faultAt, top: margin.top });
    listenToKeys(plot, view, state, chart);
    return { redraw };
  };
  Testbed.frame.count = 0;

  function told(chart, view, y) {
    const on = (chart.faults ?? []).filter((one) => one.from <= view.cursor && view.cursor <= (one.to ?? Infinity));
    const names = [...new Set(on.map((one) => one.name))];
    const faults = names.length ? `on: ${names.join(", ")}` : null;
    const parts = [seconds(view.cursor, view.span() / 500), chart.read?.(view.cursor, y), faults];
    return parts.filter(Boolean).join("  \u00b7  ");
  }

  function timeAxis(layer, view, x, width, height) {
    const { step, at } = ticks(view.from, view.to, width / 90);
    layer.append(svg("line", { x1: 0, x2: width, y1: height, y2: height, class: "axis" }));
    const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
    for (const t of at) {
      layer.append(svg("line", { x1: x(t), x2: x(t), y1: height, y2: height + 4, class: "axis" }));
      layer.append(svg("text", { x: x(t), y: height + 16, "text-anchor": "middle", class: "tick" }, t.toFixed(digits)));
    }
    const unit = { x: width, y: height + 29, "text-anchor": "end", class: "tick" };
    layer.append(svg("text", unit, "s since the workload\u2019s start"));
  }

  function listenToPointer(plot, view, state, { timeAt, point, faultAt, top }) {
    let from = null;
    const place = (event) => {
      const box = plot.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top - top];
    };
    plot.addEventListener("pointerdown", (event) => {
      if (event.button === 0) [from] = place(event);
    });
    plot.addEventListener("pointermove", (event) => {
      const [at, y] = place(event);
      state.y = y;
      state.select = from !== null && Math.abs(at - from) > DRAGGED ? [from, at] : null;
      if (state.select && !plot.hasPointerCapture(event.pointerId)) plot.setPointerCapture(event.pointerId);
      const t = timeAt(at);
      view.point(Math.min(Math.max(t, view.from), view.to));
    });
    plot.addEventListener("pointerup", (event) => {
      const chosen = state.select;
      from = state.select = null;
      const [at, y] = place(event);
      const fault = y < 0 && !chosen ? faultAt(at, y + top) : null;
      if (chosen) view.show(...chosen.map(timeAt).sort((one, other) => one - other));
      else if (fault) view.around(fault);
      else point();
    });
    plot.addEventListener("pointerleave", () => {
      state.y = null;
      if (!plot.matches(":focus")) view.point(null);
    });
    plot.addEventListener("dblclick", () => view.reset());
  }

  function listenToKeys(plot, view, state, chart) {
    const { steps, faults = [] } = chart;
    const step = (way) => {
      if (!chart.rows) state.y = null;
      const now = view.cursor ?? (view.from + view.to) / 2;
      if (!steps) return view.point(now + (way * view.span()) / 100);
      const later = way > 0 ? steps.find((t) => t > now + 1e-9) : steps.findLast((t) => t < now - 1e-9);
      if (later !== undefined) view.point(later);
    };
    const zoom = (factor) => view.zoom(factor, view.cursor ?? undefined);
    const row = (way) => {
      const rows = chart.rows();
      const from = state.y ?? (way > 0 ? -Infinity : Infinity);
      state.y = (way > 0 ? rows.find((y) => y > from + 1) : rows.findLast((y) => y < from - 1)) ?? state.y;
      view.point(view.cursor ?? (view.from + view.to) / 2);
    };
    const closer = () => {
      const now = view.cursor ?? (view.from + view.to) / 2;
      const fault = faults.find((one) => one.from <= now && now <= (one.to ?? Infinity));
      if (fault) view.around(fault);
    };
    const acts = {
      Enter: closer,
      ...(chart.rows ? { ArrowUp: () => row(-1), ArrowDown: () => row(1) } : {}),
      ArrowLeft: (event) => (event.shiftKey ? view.pan(-0.25) : step(-1)),
      ArrowRight: (event) => (event.shiftKey ? view.pan(0.25) : step(1)),
      Home: () => view.point(view.from),
      End: () => view.point(view.to),
      "+": () => zoom(0.5),
      "=": () => zoom(0.5),
      "-": () => zoom(2),
      0: () => view.reset(),
    };
    plot.addEventListener("keydown", (event) => {
      const act = event.ctrlKey || event.metaKey || event.altKey ? null : acts[event.key];
      if (!act) return;
      event.preventDefault();
      act(event);
    });
  }
})();
