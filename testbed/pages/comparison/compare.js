// The runs over each other in one chart over time; all else on the page needs no script.
"use strict";
(() => {
  const { curves } = JSON.parse(document.getElementById("data").textContent);
  if (!curves) return;
  const view = Testbed.timeView(0, curves.end, curves.speed);
  Testbed.lineChart(document.getElementById("over-time"), view, { ...curves, height: 260, right: innerWidth < 700 ? 120 : 190 });
})();
