// What all charts show, chosen by buttons: closer, back, along, or around one fault.
"use strict";
globalThis.Testbed ??= {};
(() => {
  const { html, seconds } = Testbed;

  Testbed.toolbar = (container, view, faults) => {
    const button = (text, title, act) => {
      const made = html("button", { type: "button", title, "aria-label": title }, text);
      made.addEventListener("click", act);
      return made;
    };
    const whole = button("whole run", "Show the whole run", () => view.reset());
    const shown = html("span", { class: "shown", "aria-live": "polite" });
    container.append(
      ...(faults.length ? [chooser(view, faults)] : []),
      button("\u2212", "Show more time", () => view.zoom(2)),
      button("+", "Look closer", () => view.zoom(0.5)),
      button("\u25c0", "Earlier", () => view.pan(-0.5)),
      button("\u25b6", "Later", () => view.pan(0.5)),
      whole,
      shown,
    );
    const tell = () => {
      const grain = view.span() / 100;
      shown.textContent = `${seconds(view.from, grain)} to ${seconds(view.to, grain)}`;
      whole.disabled = view.isWhole();
    };
    view.on((_, moved) => moved && tell());
    tell();
  };

  function chooser(view, faults) {
    const nothing = html("option", { value: "" }, "look at a fault\u2026");
    const select = html("select", { "aria-label": "Look closer at a fault" }, nothing);
    faults.forEach((fault, index) => {
      const name = `${fault.name}, at ${seconds(fault.from)}${fault.title ? `: ${fault.title}` : ""}`;
      select.append(html("option", { value: index }, name));
    });
    select.addEventListener("change", () => {
      if (select.value === "") view.reset();
      else view.around(faults[Number(select.value)]);
    });
    return select;
  }
})();
