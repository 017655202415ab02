// A chart worked by pointer (read off, drag to look closer, click on a fault) and by keyboard.
"use strict";
globalThis.Testbed ??= {};
(() => {
  const DRAGGED = 5;
  const PAN = 0.25;
  const STEPS_OF_VIEW = 100;

  /** Listen in a frame (frame.js). */
  Testbed.frameInput = (frame) => {
    listenToPointer(frame);
    listenToKeys(frame);
  };

  function listenToPointer(frame) {
    const { view, plot } = frame;
    let from = null;
    const on = (event, act) => plot.addEventListener(event, act);
    const place = (event) => {
      const box = plot.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top - frame.margin.top];
    };
    on("pointerdown", (event) => {
      if (event.button === 0) [from] = place(event);
    });
    on("pointermove", (event) => {
      const [at, y] = place(event);
      frame.y = y;
      frame.select = from !== null && Math.abs(at - from) > DRAGGED ? [from, at] : null;
      if (frame.select && !plot.hasPointerCapture(event.pointerId)) plot.setPointerCapture(event.pointerId);
      view.point(Math.min(Math.max(frame.timeAt(at), view.from), view.to));
    });
    on("pointerup", (event) => {
      const chosen = frame.select;
      from = frame.select = null;
      act(frame, chosen, place(event));
    });
    on("pointercancel", () => {
      from = frame.select = null;
    });
    on("pointerleave", () => {
      frame.y = null;
      if (!plot.matches(":focus")) view.point(null);
    });
    on("dblclick", () => view.reset());
  }

  /** Look at what was dragged over, or at the fault whose bar was clicked. */
  function act(frame, chosen, [at, y]) {
    const { view, lane, margin } = frame;
    if (chosen) return view.show(...chosen.map(frame.timeAt).sort((one, other) => one - other));
    const fault = y < 0 ? lane.at(frame.x, frame.size().width, at - margin.left, y + margin.top) : null;
    if (fault) return view.around(fault);
    Testbed.frameReading(frame);
  }

  function listenToKeys(frame) {
    const { view, chart, plot } = frame;
    const now = () => view.cursor ?? (view.from + view.to) / 2;
    const zoom = (factor) => view.zoom(factor, view.cursor ?? undefined);
    const along = (way) => (event) => (event.shiftKey ? view.pan(way * PAN) : step(frame, now(), way));
    const upDown = { ArrowUp: () => row(frame, now(), -1), ArrowDown: () => row(frame, now(), 1) };
    const acts = {
      ...(chart.rows ? upDown : {}),
      ArrowLeft: along(-1),
      ArrowRight: along(1),
      Enter: () => look(frame, now()),
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

  /** Read off the next moment: of the chart's own, or a little further. */
  function step(frame, now, way) {
    const { view, chart } = frame;
    if (!chart.rows) frame.y = null;
    if (!chart.steps) return view.point(now + (way * view.span()) / STEPS_OF_VIEW);
    const is = way > 0 ? (t) => t > now + 1e-9 : (t) => t < now - 1e-9;
    const next = way > 0 ? chart.steps.find(is) : chart.steps.findLast(is);
    if (next !== undefined) view.point(next);
  }

  /** Read off the next row. */
  function row(frame, now, way) {
    const rows = frame.chart.rows();
    const from = frame.y ?? -way * Infinity;
    const next = way > 0 ? rows.find((y) => y > from + 1) : rows.findLast((y) => y < from - 1);
    frame.y = next ?? frame.y;
    frame.view.point(now);
  }

  /** Look closer at a fault that is on. */
  function look(frame, now) {
    const fault = (frame.chart.faults ?? []).find((one) => one.from <= now && now <= (one.to ?? Infinity));
    if (fault) frame.view.around(fault);
  }
})();
