"use strict";
// Breaking and mending by hand: a target, how long, and buttons that ask the run. Without leave they say why they are off.
(() => {
  const NAMES = { cut: "Cut", lossy: "Make lossy", reboot: "Reboot", silence: "Silence", mend: "Mend" };
  const NO_TOKEN = "open the address that the command printed to break things from here";
  const token = () => location.hash.slice(1);
  const nameOf = (action) => NAMES[action] || action; // kinds of plugins have their word alone
  let scene = null;
  let running = false;
  let drawn = "";

  const target = Live.byId("target");

  function show(next) {
    scene = next;
    running = false;
    document.body.classList.toggle("by-hand", !next.hand.why);
    drawn = "";
    target.replaceChildren(Live.make("option", { value: "" }, "choose, or click a part"), group("switches", scene.switches));
    for (const name of new Set(scene.links.map(plane))) {
      target.append(group(name, scene.links.filter((link) => plane(link) === name)));
    }
    answer("", false);
    refresh();
  }

  const plane = (link) => `links of ${link.split(":")[1].split("-")[0].replace("p", "plane ")}`;

  function group(label, names) {
    const made = Live.make("optgroup", { label });
    made.append(...names.map((name) => Live.make("option", { value: name }, name)));
    return made;
  }

  function kind() {
    return target.value.includes(":") ? "link" : "switch";
  }

  function update(frame) {
    running = frame.phase === "run";
    refresh();
  }

  /** Buttons are made again only when they change, or the keyboard would lose its place. */
  function refresh() {
    const is = target.value ? Live.drawing.state(target.value) : "";
    Live.say(Live.byId("target-is"), is);
    if (!scene) return;
    const why = scene.hand.why || (token() ? "" : NO_TOKEN) || (running ? "" : "possible while the workload runs");
    const offers = { ...(scene.hand.offers[kind()] || {}), mend: "" };
    const reasons = Object.fromEntries(Object.entries(offers).map(([action, lacking]) => [action, why || lacking || (target.value ? "" : "choose a target")]));
    const key = JSON.stringify(reasons);
    if (key !== drawn) {
      drawn = key;
      draw(reasons);
    }
  }

  function draw(reasons) {
    const held = document.activeElement ? document.activeElement.dataset.action : "";
    const off = new Set(Object.values(reasons).filter(Boolean));
    const buttons = Object.entries(reasons).map(([action, reason]) => button(action, reason));
    const notes = [...off].map((reason) => Live.make("span", { class: "why" }, named(reason, reasons)));
    Live.byId("buttons").replaceChildren(...buttons, ...notes);
    const again = buttons.find((made) => held && made.dataset.action === held);
    if (again) again.focus();
  }

  function named(reason, reasons) {
    const all = Object.values(reasons).every((each) => each === reason);
    const which = Object.keys(reasons).filter((action) => reasons[action] === reason).map(nameOf);
    return all ? reason : `${which.join(", ")}: ${reason}`;
  }

  function button(action, reason) {
    const made = Live.make("button", { type: "button", "data-action": action }, nameOf(action));
    made.disabled = Boolean(reason);
    if (reason) made.title = reason;
    made.addEventListener("click", () => ask(action));
    return made;
  }

  async function ask(action) {
    const request = { do: action, target: target.value };
    if (action !== "mend") request.for_s = Live.byId("until-mended").checked ? null : Live.byId("for").valueAsNumber;
    if (action === "lossy") request.share = Live.byId("loss").valueAsNumber / 100;
    answer("…", false);
    try {
      const headers = { "Content-Type": "application/json", "X-Token": token() };
      const reply = await fetch("/do", { method: "POST", headers, body: JSON.stringify(request) });
      const { ok, text } = await reply.json();
      answer(ok ? `✔ ${text}` : `✖ ${text}`, !ok);
    } catch {
      answer("✖ the server does not answer", true);
    }
  }

  function answer(text, refused) {
    Live.byId("answer").classList.toggle("refused", refused);
    Live.say(Live.byId("answer"), text);
  }

  Live.byId("hand").addEventListener("submit", (event) => event.preventDefault());
  Live.byId("until-mended").addEventListener("change", (event) => (Live.byId("for").disabled = event.target.checked));
  addEventListener("hashchange", refresh);
  target.addEventListener("change", () => Live.drawing.choose(target.value));
  Live.drawing.onChoose((name) => {
    target.value = name;
    refresh();
  });

  function stop() {
    running = false;
    refresh();
  }

  Live.faults = { show, update, stop };
})();
