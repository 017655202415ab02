"use strict";
// What is read from the back of the room: steps, goodput, time, phase, and whether the machine keeps time.
(() => {
  const WINDOW_S = 30;
  const WIDTH = 300;
  const HEIGHT = 60;
  const LIGHTS = { good: "●", strained: "▲", lost: "✖", unknown: "○", virtual: "◇" };
  let past = [];

  function show(scene) {
    past = [];
    Live.speed = scene.speed || 1;
    Live.say(Live.byId("goodput-window"), Live.moment(WINDOW_S / Live.speed, Live.speed > 1 ? 2 : 0));
    Live.say(Live.byId("name"), scene.title || scene.name);
    Live.say(Live.byId("about"), scene.about);
    document.title = `${scene.name} - mrc-testbed`;
    for (const id of ["phase", "clock", "fidelity", "steps"]) Live.byId(id).hidden = true;
    draw();
  }

  function update(frame) {
    chip("phase", frame.phase, "");
    Live.byId("clock").hidden = frame.t_s === null;
    if (frame.t_s !== null) Live.say(Live.byId("clock"), Live.moment(frame.t_s, Live.speed > 1 ? 2 : 1));
    const { light, text } = frame.fidelity;
    chip("fidelity", `${LIGHTS[light]} ${light === "virtual" ? "virtual time" : `timing ${light}`}`, light);
    Live.byId("fidelity").title = text;
    work(frame);
    if (frame.t_s !== null) {
      const total = Object.values(frame.hosts).reduce((sum, host) => sum + host.goodput_bps, 0);
      past.push([frame.t_s, total]);
      draw();
    }
  }

  function chip(id, text, kind) {
    const element = Live.byId(id);
    element.hidden = !text;
    element.className = `chip ${kind}`;
    Live.say(element, text);
  }

  function work(frame) {
    const { steps, progress } = frame;
    Live.byId("steps").hidden = !steps.length && !progress;
    Live.byId("steps-times").hidden = !steps.length;
    if (steps.length) {
      const each = (text) => steps.map((one) => (one.job ? `${one.job} ${text(one)}` : text(one))).join(", ");
      Live.say(Live.byId("steps-done"), String(steps.reduce((sum, one) => sum + one.done, 0)));
      const of = steps.reduce((sum, one) => sum + one.of, 0);
      Live.say(Live.byId("steps-of"), of ? ` / ${of}` : "");
      Live.say(Live.byId("steps-what"), "steps");
      Live.say(Live.byId("steps-last"), each((one) => Live.seconds(one.last_s)));
      Live.say(Live.byId("steps-worst"), each((one) => Live.seconds(one.worst_s)));
    } else if (progress) {
      const [unit, of] = Live.unit();
      Live.say(Live.byId("steps-done"), (progress.done * of).toFixed(0));
      Live.say(Live.byId("steps-of"), ` / ${(progress.of * of).toFixed(0)}`);
      Live.say(Live.byId("steps-what"), unit);
    }
  }

  /** The window ends at the last frame; what came from the server at once lies before it. */
  function draw() {
    const last = past.length ? past[past.length - 1][0] : 0;
    const window_s = WINDOW_S / Live.speed;
    past = past.filter(([t]) => t > last - window_s);
    const top = nice(Math.max(1, ...past.map(([, bps]) => bps)));
    const points = past.map(([t, bps]) => [WIDTH * (1 - (last - t) / window_s), HEIGHT - (HEIGHT - 2) * (bps / top)]);
    const line = points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
    const closed = points.length ? `${line}L${WIDTH} ${HEIGHT}L${points[0][0].toFixed(1)} ${HEIGHT}Z` : "";
    Live.byId("spark").querySelector(".line").setAttribute("d", line);
    Live.byId("spark").querySelector(".area").setAttribute("d", closed);
    Live.say(Live.byId("goodput-top"), past.length ? Live.rate(top) : "-");
    Live.say(Live.byId("goodput-now"), past.length ? Live.rate(past[past.length - 1][1]) : "-");
  }

  /** The next of 1, 2, 5 times a power of ten, so that the scale seldom changes. */
  function nice(value) {
    const power = 10 ** Math.floor(Math.log10(value));
    return power * [1, 2, 5, 10].find((step) => step * power >= value);
  }

  function remember(pairs) {
    past = [...pairs, ...past.filter(([t]) => !pairs.length || t > pairs[pairs.length - 1][0])];
    draw();
  }

  Live.numbers = { show, update, remember };
})();
