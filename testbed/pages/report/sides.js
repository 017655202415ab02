// Margins that all charts of the page share, so that the same moment is at the same place in each of them.
"use strict";
globalThis.Testbed ??= {};
Testbed.sides = { left: 140, right: 120 };
