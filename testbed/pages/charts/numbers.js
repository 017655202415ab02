// Figures as people read them, and round numbers for axes.
"use strict";
globalThis.Testbed ??= {};
(() => {
  const STEPS = [1, 2, 5, 10];

  /** Three significant digits, whole numbers whole. */
  Testbed.number = (value) => {
    if (Number.isInteger(value) || Math.abs(value) >= 100) return String(Math.round(value));
    return String(Number(value.toPrecision(3)));
  };

  /** A time in seconds as text, as fine as `grain` (s) asks for. */
  Testbed.seconds = (t, grain = 0.1) => {
    const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(grain) - 1e-9)));
    return `${t.toFixed(digits)} s`;
  };

  /** A length of time in seconds in the unit that suits it. */
  Testbed.duration = (s) =>
    Math.abs(s) >= 0.9995 || s === 0 ? `${Testbed.number(s)} s` : `${Testbed.number(s * 1e3)} ms`;

  /** Round numbers from `from` to `to`, about `count` of them: {step, at: [...]}. */
  Testbed.ticks = (from, to, count) => {
    const rough = Math.max((to - from) / Math.max(count, 1), 1e-9);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * STEPS.find((one) => one * power >= rough * 0.999);
    const at = [];
    for (let turn = Math.ceil(from / step - 1e-6); turn * step <= to + step * 1e-6; turn++) at.push(turn * step);
    return { step, at };
  };
})();
