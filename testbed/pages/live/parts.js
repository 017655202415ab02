"use strict";
// The one name that the scripts of this page share, and what all of them use.
const Live = {};
(() => {
  Live.data = JSON.parse(document.getElementById("data").textContent);

  Live.byId = (id) => document.getElementById(id);

  /** An element with attributes and text; text is never markup. */
  Live.make = (tag, attributes = {}, text = "") => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text) made.textContent = text;
    return made;
  };

  /** Text that is there already is left alone: five times a second, most of it is. */
  Live.say = (element, text) => {
    if (element.textContent !== text) element.textContent = text;
  };

  Live.rate = (bps) => {
    for (const [unit, scale] of [["Gb/s", 1e9], ["Mb/s", 1e6], ["kb/s", 1e3]]) {
      if (bps >= scale) return `${(bps / scale).toPrecision(3)} ${unit}`;
    }
    return `${Math.round(bps)} b/s`;
  };

  Live.seconds = (s) => {
    if (s === null || s === undefined) return "-";
    if (s >= 1) return `${s.toFixed(2)} s`;
    return s >= 1e-3 || !s ? `${Math.round(s * 1e3)} ms` : `${Math.round(s * 1e6)} us`;
  };

  /** Of the scene: how many times faster than written the run is. Then all of it is over in milliseconds. */
  Live.speed = 1;
  Live.unit = () => (Live.speed > 1 ? ["ms", 1e3] : ["s", 1]);
  Live.moment = (s, digits) => `${(s * Live.unit()[1]).toFixed(digits)} ${Live.unit()[0]}`;

  Live.percent = (share) => `${Math.round(share * 100)} %`;
})();
