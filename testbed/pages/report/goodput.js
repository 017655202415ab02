// Goodput over time, one view of it at a time.
"use strict";
globalThis.Testbed ??= {};
(() => {
  const { html } = Testbed;
  const MOST_TOGETHER = 4;

  /** `views`: as goodput.py makes them, at least one. */
  Testbed.goodput = (container, view, views, faults) => {
    const whole = views.map((one) => {
      const series = one.series.map((line) => ({ ...placed(one), ...line }));
      return { ...one, series, apart: series.length > MOST_TOGETHER };
    });
    const source = html("figcaption", {});
    const place = html("div", {});
    const choice = Testbed.choice("Show", whole.map((one) => one.label), (index) => {
      chart.show(whole[index]);
      source.textContent = words(whole[index]);
    });
    container.append(choice, place, source);
    const look = { label: "Goodput over time", faults, height: 230, ...Testbed.sides };
    const chart = Testbed.lineChart(place, view, { ...look, ...whole[0] });
    source.textContent = words(whole[0]);
  };

  const placed = (one) => ({ from: one.from, grain: one.grain, t: one.t, to: one.to });

  function words(one) {
    const step = Testbed.duration(one.grain ?? one.step);
    const near = one.finer ? `, near faults of ${Testbed.duration(one.finer)}` : "";
    const merged = one.series.some((series) => series.lo);
    const range = merged ? `; the pale range is from the least to the greatest ${one.range}` : "";
    return `${one.unit} ${one.source}. Each value is the mean of ${step}${near}${range}.`;
  }

  /** Radio buttons; `chosen` is called with the number of the one that is taken. */
  Testbed.choice = (title, labels, chosen) => {
    const name = `choice-${title.toLowerCase()}`;
    const buttons = labels.map((label, index) => {
      const button = html("input", { type: "radio", name, checked: index === 0 && "" });
      button.addEventListener("change", () => chosen(index));
      return html("label", {}, button, ` ${label}`);
    });
    return html("fieldset", { class: "choice screen-only" }, html("legend", {}, title), ...buttons);
  };
})();
