"use strict";
// What happened, the newest first. Lines are added, never written again: a screen reader tells each once.
(() => {
  const MOST = 50;
  const SIGNS = {
    fault: ["✖", "broken"], heal: ["✔", "mended"], ev: ["◆", "EVs"], plane: ["▭", "plane"], port: ["▫", "port"],
    map: ["◎", "mapper"], qp: ["⚠", "QP"], note: ["·", "note"],
  };
  let told = 0;

  function show() {
    told = 0;
    Live.byId("ticker").replaceChildren();
  }

  function update(frame) {
    const list = Live.byId("ticker");
    for (const item of frame.ticker.filter((each) => each.n > told)) {
      list.prepend(line(item));
      told = item.n;
    }
    while (list.children.length > MOST) list.lastChild.remove();
  }

  function line(item) {
    const made = Live.make("li", { class: item.kind });
    const time = item.t_s === null ? "" : Live.moment(item.t_s, 2);
    const [sign, word] = SIGNS[item.kind] || SIGNS.note;
    made.append(Live.make("time", {}, time), Live.make("span", { class: "sign", role: "img", "aria-label": word, title: word }, sign));
    made.append(Live.make("span", {}, item.text));
    return made;
  }

  Live.ticker = { show, update };
})();
