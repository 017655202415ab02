"use strict";
// EVs by the switch halfway along their path: a row a switch, a column a plane; in a tile how many are in which state.
(() => {
  const STATES = ["good", "skip", "bad", "denied"];
  const WORDS = { good: "good", skip: "skipped", bad: "retired", denied: "denied" };
  /** In place of a switch: paths between hosts below one T0, which cross no other. */
  const LOCAL = "local";
  /** The same: EVs that switches hash, which may take any way. */
  const HASHED = "hashed";
  const NAMES = { [LOCAL]: "group", [HASHED]: HASHED };
  const PLACES = { [LOCAL]: "inside groups", [HASHED]: HASHED };
  let tiles = new Map();

  function show() {
    tiles = new Map();
    Live.byId("tiles").replaceChildren();
  }

  /** `t2-3` as [2, 3]; what is no switch comes last. */
  const parts = (place) => (place in NAMES ? [-1, 0] : place.slice(1).split("-").map(Number));
  const called = (place) => PLACES[place] || `T${parts(place).join(" ")}`;

  /** The highest tier first, as it is drawn. */
  function order(one, other) {
    const [[tier, number], [otherTier, otherNumber]] = [parts(one), parts(other)];
    return otherTier - tier || number - otherNumber;
  }

  function build(keys) {
    tiles = new Map();
    const places = keys.map((key) => key.split("/"));
    const planes = [...new Set(places.map(([plane]) => plane))].sort((a, b) => a - b);
    const switches = [...new Set(places.map(([, place]) => place))].sort(order);
    const head = Live.make("tr");
    const corner = Live.make("th");
    corner.append(Testbed.term("EVs", "EV"));
    head.append(corner, ...planes.map((plane) => Live.make("th", { scope: "col" }, `plane ${plane}`)));
    const explained = new Set();
    const rows = switches.map((place) => {
      const row = Live.make("tr");
      const name = Live.make("th", { scope: "row" });
      if (place in NAMES) name.append(NAMES[place]);
      else name.append(...heading(place, explained));
      row.append(name);
      for (const plane of planes) {
        const key = `${plane}/${place}`;
        row.append(keys.includes(key) ? cell(key) : Live.make("td"));
      }
      return row;
    });
    Live.byId("tiles").replaceChildren(head, ...rows);
  }

  /** `T1 3`; the first of its tier has what the glossary says of it. */
  function heading(place, explained) {
    const [tier, number] = parts(place);
    const name = `T${tier}`;
    const known = explained.has(name) || !["T1", "T2"].includes(name);
    explained.add(name);
    return [known ? name : Testbed.term(name, name), ` ${number}`];
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
    const [plane, at] = key.split("/");
    const words = STATES.map((state, index) => `${now[index]} ${WORDS[state]}`).join(", ");
    tile.tile.setAttribute("aria-label", `plane ${plane}, ${called(at)}: ${words}`);
    tile.tile.title = words;
  }

  Live.tiles = { show, update };
})();
