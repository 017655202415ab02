// Terms of the glossary in what scripts make: terms.py does the same in templates.
"use strict";
globalThis.Testbed ??= {};
(() => {
  const known = JSON.parse(document.getElementById("terms").textContent);

  /** `text` as an occurrence of the term `name`, which the page was given (`terms` of assemble.py). */
  Testbed.term = (text, name) => {
    const made = document.createElement("abbr");
    made.className = "term";
    made.tabIndex = 0;
    made.title = known[name];
    made.textContent = text;
    return made;
  };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && document.activeElement?.classList.contains("term")) document.activeElement.blur();
  });
})();
