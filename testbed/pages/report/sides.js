// Margins that all charts of the page share, so that the same moment is at the same place in each of them.
"use strict";
globalThis.Testbed ??= {};
Testbed.sides = { left: 140, right: 120 };
(() => {
  const A_LETTER = 5.9;
  const BESIDE = 14;

  /** Makes room for names of rows at the left: paths over three tiers name five switches. */
  Testbed.makeRoomFor = (names) => {
    const longest = names.reduce((most, name) => Math.max(most, name.length), 0);
    Testbed.sides.left = Math.max(Testbed.sides.left, Math.ceil(longest * A_LETTER) + BESIDE);
  };
})();
