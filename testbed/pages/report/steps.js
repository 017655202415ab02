// Step times: a bar a step, from its beginning to its end and as high as it was long.
"use strict";
globalThis.Testbed ??= {};
(() => {
  const { svg, html, ticks, number, duration } = Testbed;

  /** `steps`: of a job, as steps.py makes them. */
  Testbed.stepChart = (container, view, steps, faults) => {
    const worst = steps.s.indexOf(Math.max(...steps.s));
    const { word, per } = Testbed.timeUnit();
    const axis = ticks(0, steps.p100 * per * 1.08, 4);
    const end = steps.p100 * 1.12;
    Testbed.frame(container, view, {
      label: steps.job ? `Step times of ${steps.job}` : "Step times",
      faults,
      height: 170,
      ...Testbed.sides,
      above: 20,
      steps: steps.t.map((t, index) => t - steps.s[index] / 2),
      draw: (layer, x, size, around) => {
        const y = (value) => size.height * (1 - value / end);
        for (const value of axis.at) yMark(around, y(value / per), number(value), size);
        around.append(svg("text", { x: -8, y: -11, "text-anchor": "end", class: "tick" }, word));
        bars(layer, steps, worst, x, y, view, size);
        levels(around, steps, y, size);
      },
      read: (t) => told(steps, t),
    });
    const whose = steps.job ? `${steps.job}. ` : "";
    const what = `${whose}A bar a step: as wide and as high as it was long. Steps of the warm-up are left out.`;
    const many = steps.of > 1 ? ` Each bar is the slowest of ${steps.of} steps.` : "";
    container.append(html("figcaption", {}, `${what}${many}`));
  };

  function yMark(layer, y, text, { width }) {
    layer.append(svg("line", { x1: 0, x2: width, y1: y, y2: y, class: "grid" }));
    layer.append(svg("text", { x: -8, y: y + 4, "text-anchor": "end", class: "tick" }, text));
  }

  function bars(layer, steps, worst, x, y, view, size) {
    steps.t.forEach((t, index) => {
      const from = t - steps.s[index];
      if (t < view.from || from > view.to) return;
      const width = Math.max(x(t) - x(from) - 1, 1);
      const top = y(steps.s[index]);
      const name = index === worst ? "bar worst" : "bar";
      layer.append(svg("rect", { x: x(from), width, y: top, height: size.height - top, class: name }));
      layer.append(svg("rect", { x: x(from), width, y: top, height: 2.5, class: `${name} top` }));
      if (index === worst) {
        const middle = Math.min(Math.max(x(from) + width / 2, 24), size.width - 24);
        const label = { x: middle, y: top - 4, "text-anchor": "middle", class: "name" };
        layer.append(svg("text", label, `step ${steps.number[index]}`));
      }
    });
  }

  /** The lines of median and P100, with their names where they end; apart where they would touch. */
  function levels(layer, steps, y, { width }) {
    const lines = [["p100", "P100", steps.p100], ["median", "clean median", steps.median]];
    let above = -Infinity;
    for (const [name, label, value] of lines.filter((line) => line[2] !== null)) {
      const at = y(value);
      const text = Math.max(at + 4, above + 13);
      above = text;
      layer.append(svg("line", { x1: 0, x2: width, y1: at, y2: at, class: name }));
      layer.append(svg("text", { x: width + 6, y: text, class: "name" }, `${label} ${duration(value)}`));
    }
  }

  function told(steps, t) {
    const index = steps.t.findIndex((end, at) => t <= end && t >= end - steps.s[at]);
    if (index < 0) return "no finished step";
    return `step ${steps.number[index]}: ${duration(steps.s[index])}, ${steps.last[index]} ended last`;
  }
})();
