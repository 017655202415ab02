// What is wider than the screen says so: a line above it, and an edge that fades where there is more.
"use strict";
(() => {
  const PLACES = ".scroll, .moved, .fabric, #drawing";

  function look(place, hint) {
    const hidden = place.scrollWidth - place.clientWidth;
    const left = place.scrollLeft > 1;
    const right = hidden - place.scrollLeft > 1;
    place.classList.toggle("more-left", left);
    place.classList.toggle("more-right", right);
    hint.hidden = hidden <= 1;
    hint.textContent = right ? "move it sideways: more at the right \u2192" : "\u2190 more at the left";
  }

  function watch(place) {
    const hint = document.createElement("p");
    hint.className = "sideways screen-only";
    place.before(hint);
    const again = () => look(place, hint);
    place.addEventListener("scroll", again, { passive: true });
    const size = new ResizeObserver(again);
    const observe = () => [place, ...place.children].forEach((each) => size.observe(each));
    new MutationObserver(observe).observe(place, { childList: true });
    observe();
    again();
  }

  for (const place of document.querySelectorAll(PLACES)) watch(place);
})();
