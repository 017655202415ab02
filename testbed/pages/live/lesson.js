"use strict";
// A lesson beside the fabric: its text, fields for answers, and what the check found. Hidden unless there is one.
(() => {
  const NO_TOKEN = "open the address that the command printed to answer from here";
  const NO_RUN = Live.byId("name").textContent;
  const token = () => location.hash.slice(1);
  let fields = [];

  /** Elements of a tree of tags, attributes and texts: a text is never markup. */
  function build(node) {
    if (typeof node === "string") return document.createTextNode(node);
    const [tag, attributes, ...inside] = node;
    const made = Live.make(tag, attributes);
    made.append(...inside.map(build));
    return made;
  }

  function show(lesson) {
    document.body.classList.add("with-lesson");
    Live.byId("lesson").hidden = false;
    Live.say(Live.byId("lesson-title"), lesson.title);
    Live.byId("lesson-text").replaceChildren(...lesson.text.map(build), ...lesson.hints.map(hint));
    Live.say(Live.byId("lesson-files"), lesson.files.length ? `Change ${lesson.files.join(", ")} in ${lesson.folder}` : "");
    Live.byId("in-virtual").hidden = lesson.virtual === null;
    if (!fields.length) Live.byId("virtual").checked = Boolean(lesson.virtual);
    showFields(lesson.fields);
    if (lesson.fabric && Live.byId("verdict").hidden && !Live.byId("drawing").firstChild) Live.drawing.show(lesson.fabric);
    if (Live.byId("name").textContent === NO_RUN) Live.say(Live.byId("name"), "no run yet");
    if (!token()) answer(NO_TOKEN, true);
  }

  /** What was typed and is not saved stays. */
  function showFields(shown) {
    const typed = new Map(changed().map((field) => [field.name, written(field)]));
    const focused = document.activeElement?.id;
    fields = shown;
    const groups = [["Before the run", true], ["After the run", false]];
    Live.byId("lesson-fields").replaceChildren(...groups.flatMap(([title, first]) => group(title, fields.filter((one) => one.predict === first))));
    for (const field of fields) {
      field.shown = written(field);
      if (typed.has(field.name)) write(field, typed.get(field.name));
    }
    if (focused) document.getElementById(focused)?.focus();
  }

  function changed() {
    return fields.filter((field) => written(field) !== field.shown);
  }

  function hint(text, number) {
    const made = Live.make("details");
    made.append(Live.make("summary", {}, `Hint ${number + 1}`), ...text.map(build));
    return made;
  }

  function group(title, some) {
    return some.length ? [Live.make("h3", {}, title), ...some.map(row)] : [];
  }

  function row(field) {
    const made = Live.make("p", { class: "field" });
    const label = Live.make("label", { for: `answer-${field.name}` }, field.ask);
    made.append(label, control(field), Live.make("small", { id: `form-${field.name}` }, `${field.name}: ${field.form}`));
    return made;
  }

  function control(field) {
    const about = { id: `answer-${field.name}`, "aria-describedby": `form-${field.name}` };
    if (field.several) return boxes(field);
    if (field.choices.length) {
      const made = Live.make("select", about);
      made.append(...["", ...field.choices].map((choice) => Live.make("option", { value: choice }, choice)));
      made.value = field.choices.find((choice) => choice.toLowerCase() === field.given.toLowerCase()) || "";
      return made;
    }
    const made = field.long ? Live.make("textarea", { ...about, rows: 3 }) : Live.make("input", { ...about, type: "text", autocomplete: "off", spellcheck: "false" });
    made.value = field.given;
    return made;
  }

  function boxes(field) {
    const made = Live.make("span", { id: `answer-${field.name}`, role: "group", "aria-label": field.ask });
    const given = field.given.toLowerCase().split(",").map((one) => one.trim());
    for (const choice of field.choices) {
      const label = Live.make("label");
      const box = Live.make("input", { type: "checkbox", value: choice });
      box.checked = given.includes(choice.toLowerCase());
      label.append(box, ` ${choice}`);
      made.append(label, " ");
    }
    return made;
  }

  function written(field) {
    const made = Live.byId(`answer-${field.name}`);
    if (!field.several) return made.value.trim();
    return [...made.querySelectorAll("input:checked")].map((box) => box.value).join(", ");
  }

  function write(field, text) {
    const made = Live.byId(`answer-${field.name}`);
    if (!field.several) made.value = text;
    else for (const box of made.querySelectorAll("input")) box.checked = text.split(", ").includes(box.value);
  }

  async function ask(action) {
    const request = { do: action, virtual: Live.byId("virtual").checked };
    for (const field of changed()) {
      request[`answer.${field.name}`] = written(field);
      request[`was.${field.name}`] = field.given;
    }
    busy(true);
    answer(action === "check" ? "checking..." : "saving...", false);
    try {
      const headers = { "Content-Type": "application/json", "X-Token": token() };
      const reply = await fetch("/lesson", { method: "POST", headers, body: JSON.stringify(request) });
      const { ok, text } = await reply.json();
      answer(ok ? text : `✖ ${text}`, !ok);
      if (!ok || action !== "check") busy(false);
    } catch {
      answer("✖ the server does not answer", true);
      busy(false);
    }
  }

  function busy(is) {
    for (const name of ["lesson-save", "lesson-check"]) Live.byId(name).disabled = is;
  }

  function answer(text, refused) {
    Live.byId("lesson-answer").classList.toggle("refused", refused);
    Live.say(Live.byId("lesson-answer"), text);
    if (refused) Live.byId("lesson-answer").scrollIntoView({ block: "nearest" });
  }

  function grade(found) {
    busy(false);
    answer(found.error ? `✖ ${found.error}` : "", Boolean(found.error));
    const banner = Live.byId("lesson-grade");
    banner.hidden = Boolean(found.error);
    if (found.error) return;
    banner.className = found.verdict;
    const list = Live.make("ul");
    for (const part of found.parts) {
      const given = part.given ? ` = ${part.given}` : "";
      const made = Live.make("li", { class: part.mark }, `${part.sign} ${part.name}${given}`);
      if (part.why) made.append(Live.make("small", {}, part.why));
      list.append(made);
    }
    banner.replaceChildren(Live.make("b", {}, found.line), list, ...found.notes.map((note) => Live.make("p", {}, note)));
    banner.scrollIntoView({ block: "nearest" });
  }

  Live.byId("lesson-form").addEventListener("submit", (event) => {
    event.preventDefault();
    ask("check");
  });
  Live.byId("lesson-save").addEventListener("click", () => ask("save"));

  Live.lesson = { show, grade, stop: () => busy(true) };
})();
