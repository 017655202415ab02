// Puts the charts of a run into its page, all following one view of time.
"use strict";
globalThis.Testbed ??= {};
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { html } = Testbed;
  if (data.length === null) return;
  const view = Testbed.timeView(0, data.length, data.speed);
  const faults = data.faults.occurrences;
  const place = (id) => document.getElementById(id);

  Testbed.makeRoomFor(data.timelines.groups.flatMap((group) => group.rows.map((row) => row.label)));
  Testbed.toolbar(place("toolbar"), view, faults);
  Testbed.topology(document.querySelector("figure.fabric"), view, data.faults);
  if (data.goodput.length) Testbed.goodput(place("goodput-chart"), view, data.goodput, faults);
  else place("goodput-chart").append(html("p", {}, "Not known: no sample and no stretch of a flow was recorded."));
  for (const steps of data.steps) Testbed.stepChart(place("step-chart"), view, steps, faults);
  Testbed.timelineChart(place("timeline-chart"), view, data.timelines, faults);
  Testbed.lossChart(place("loss-chart"), view, data.losses, faults);
})();
