"use strict";
// What the server says, handed to the views. The browser connects again by itself when the line breaks.
(() => {
  const views = [Live.drawing, Live.tiles, Live.numbers, Live.ticker, Live.faults];
  const PAUSE_MS = 2000;
  const source = new EventSource("/events");
  let latest = null;
  let waiting = false;
  let ended = false;

  function on(kind, take) {
    source.addEventListener(kind, (event) => take(JSON.parse(event.data)));
  }

  function connection(text) {
    Live.byId("connection").className = "chip warn";
    Live.say(Live.byId("connection"), text);
  }

  /** A browser that is slow draws the newest frame and leaves out those between. */
  function paint() {
    waiting = false;
    if (latest) for (const view of views) view.update(latest);
  }

  /** Another server may have another page: it is loaded again. */
  function known(server) {
    if (server !== Live.data.server) location.reload();
    return server === Live.data.server;
  }

  /** A page that is left open shows the next run as soon as there is one, as a rule at the same address. */
  function waitForTheNext() {
    const next = new EventSource("/events");
    next.addEventListener("server", (event) => {
      next.close();
      if (known(JSON.parse(event.data))) setTimeout(waitForTheNext, PAUSE_MS);
    });
  }

  on("server", known);

  on("scene", (scene) => {
    latest = null;
    ended = false;
    Live.byId("verdict").hidden = true;
    document.body.classList.add("has-run");
    for (const view of views) view.show(scene);
  });

  on("frame", (frame) => {
    latest = frame;
    if (!waiting) {
      waiting = true;
      // A page that is not seen is not asked to paint; it does so when it is seen again.
      requestAnimationFrame(paint);
    }
  });

  on("lesson", (lesson) => Live.lesson.show(lesson));

  on("grade", (grade) => Live.lesson.grade(grade));

  on("past", (pairs) => Live.numbers.remember(pairs));

  on("verdict", (verdict) => {
    ended = true;
    Live.faults.stop();
    const banner = Live.byId("verdict");
    banner.className = verdict.verdict;
    banner.replaceChildren(Live.make("b", {}, verdict.verdict), Live.make("span", {}, verdict.headline));
    if (verdict.reason) banner.append(Live.make("span", { class: "cut muted", title: verdict.reason }, verdict.reason));
    if (verdict.report) banner.append(Live.make("a", { href: `/report/${verdict.run}`, target: "_blank", rel: "noopener" }, "report"));
    banner.append(Live.make("code", { class: "cut", title: verdict.folder }, verdict.folder));
    banner.hidden = false;
  });

  on("bye", () => {
    source.close();
    Live.faults.stop();
    Live.lesson.stop();
    connection(ended ? "mrc-testbed has ended" : "mrc-testbed has ended without a verdict");
    setTimeout(waitForTheNext, PAUSE_MS);
  });

  source.addEventListener("open", () => connection(""));
  source.addEventListener("error", () => connection("no connection, trying again"));
})();
