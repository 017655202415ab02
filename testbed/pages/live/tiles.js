"use strict";
// EVs by place: a row an uplink, a column a plane; in each tile how many are in which state.
(() => {
  const STATES = ["good", "skip", "bad", "denied"];
  const WORDS = { good: "good", skip: "skipped", bad: "retired", denied: "denied" };
  /** In place of an uplink: paths between hosts of one group, which cross no T1. */
  const LOCAL = "local";
  /** The same: EVs that switches hash, which may cross any T1. */
  const HASHED = "hashed";
  const NAMES = { [LOCAL]: "group", [HASHED]: HASHED };
  const PLACES = { [LOCAL]: "inside groups", [HASHED]: HASHED };
  let tiles = new Map();

  function show() {
    tiles = new Map();
    Live.byId("tiles").replaceChildren();
  }

  const order = (uplink) => (uplink in NAMES ? Infinity : Number(uplink));

  function build(keys) {
    tiles = new Map();
    const places = keys.map((key) => key.split("/"));
    const planes = [...new Set(places.map(([plane]) => plane))].sort((a, b) => a - b);
    const uplinks = [...new Set(places.map(([, uplink]) => uplink))].sort((a, b) => order(a) - order(b));
    const head = Live.make("tr");
    const corner = Live.make("th");
    corner.append(Testbed.term("EVs", "EV"));
    head.append(corner, ...planes.map((plane) => Live.make("th", { scope: "col" }, `plane ${plane}`)));
    const rows = uplinks.map((uplink, index) => {
      const row = Live.make("tr");
      const name = Live.make("th", { scope: "row" });
      if (uplink in NAMES) name.append(NAMES[uplink]);
      else name.append(index ? "T1" : Testbed.term("T1", "T1"), ` ${uplink}`);
      row.append(name);
      for (const plane of planes) {
        const key = `${plane}/${uplink}`;
        row.append(keys.includes(key) ? cell(key) : Live.make("td"));
      }
      return row;
    });
    Live.byId("tiles").replaceChildren(head, ...rows);
  }

  function cell(key) {
    const made = Live.make("td");
    const tile = Live.make("span", { class: "tile", role: "img" });
    const text = Live.make("span");
    const bar = Live.make("span", { class: "bar" });
    const bars = Object.fromEntries(STATES.map((state) => [state, Live.make("i", { class: state })]));
    bar.append(...Object.values(bars));
    tile.append(text, bar);
    made.append(tile);
    tiles.set(key, { tile, text, bars, was: "" });
    return made;
  }

  function update(frame) {
    const keys = Object.keys(frame.evs);
    document.getElementById("evs").hidden = keys.length === 0; // only MRC has EVs
    if (keys.length !== tiles.size || keys.some((key) => !tiles.has(key))) build(keys);
    for (const key of keys) paint(tiles.get(key), key, frame.evs[key]);
  }

  function paint(tile, key, counts) {
    const now = STATES.map((state) => counts[state] || 0);
    if (tile.was === now.join()) return;
    tile.was = now.join();
    const all = now.reduce((sum, count) => sum + count, 0) || 1;
    STATES.forEach((state, index) => (tile.bars[state].style.width = `${(100 * now[index]) / all}%`));
    const [good, skip, bad, denied] = now;
    tile.text.textContent = bad ? `✖ ${bad} of ${all}` : denied ? `⊘ ${denied} of ${all}` : skip ? `~ ${skip} of ${all}` : `✓ ${good}`;
    tile.tile.classList.toggle("bad", bad > 0);
    const [plane, uplink] = key.split("/");
    const words = STATES.map((state, index) => `${now[index]} ${WORDS[state]}`).join(", ");
    const place = PLACES[uplink] || `uplink ${uplink}`;
    tile.tile.setAttribute("aria-label", `plane ${plane}, ${place}: ${words}`);
    tile.tile.title = words;
  }

  Live.tiles = { show, update };
})();
