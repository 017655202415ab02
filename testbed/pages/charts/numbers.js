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

  const SHORT_S = 0.05;
  let unit = { word: "s", per: 1 };

  /** In what the axis of time is read: {word, per (of them in a second)}. */
  Testbed.timeUnit = () => unit;

  /** How many seconds the page is about: of a short time, as at real scale, milliseconds are read. */
  Testbed.readTimesOf = (length) => {
    unit = length < SHORT_S ? { word: "ms", per: 1e3 } : { word: "s", per: 1 };
  };

  /** A time in seconds as text, as fine as `grain` (s) asks for. */
  Testbed.seconds = (t, grain = 0.1 / unit.per) => {
    const digits = Math.max(0, Math.min(6, Math.ceil(-Math.log10(grain * unit.per) - 1e-9)));
    return `${(t * unit.per).toFixed(digits)} ${unit.word}`;
  };

  /** A length of time in seconds in the unit that suits it. */
  Testbed.duration = (s) => {
    if (Math.abs(s) >= 0.9995 || s === 0) return `${Testbed.number(s)} s`;
    return Math.abs(s) >= 0.9995e-3 ? `${Testbed.number(s * 1e3)} ms` : `${Testbed.number(s * 1e6)} us`;
  };

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
