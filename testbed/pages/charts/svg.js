// Making elements: names, attributes, children. Text is always put in as text.
"use strict";
globalThis.Testbed ??= {};
(() => {
  function made(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  /** An SVG element; children are elements or text. */
  Testbed.svg = (tag, attributes, ...children) =>
    made(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

  /** An HTML element, likewise. */
  Testbed.html = (tag, attributes, ...children) => made(document.createElement(tag), attributes, children);
})();
