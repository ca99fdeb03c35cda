// A page of questions about the person: choice, number, short and long text, scale. What comes in
// is checked here for the person's sake, and by the server for the study's.

import { $, say } from "./words.js";

let fields = [];

export function drawForm(page) {
  fields = page.fields;
  $("form-title").textContent = page.title;
  const intro = document.createElement("div");
  intro.innerHTML = page.html;  // made of Markdown by the server, which lets no HTML through
  $("form-fields").replaceChildren(...(page.html ? [intro] : []), ...fields.map(drawField));
  $("form-error").hidden = true;
}

function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function drawField(field) {
  const several = field.kind === "choice" || field.kind === "scale";
  const mark = field.required ? [] : [make("span", { class: "muted" }, ` (${say("optional")})`)];
  const label = several
    ? make("legend", {}, field.label, ...mark)
    : make("label", { for: "field-" + field.name }, field.label, ...mark);
  const problem = make("p", { class: "problem", id: "problem-" + field.name });
  const input = { choice: drawChoice, scale: drawScale, number: drawNumber, text: drawText, long: drawText }[field.kind](field);
  const box = make(several ? "fieldset" : "div", { class: "field", id: "box-" + field.name }, label, input, problem);
  if (several) box.setAttribute("aria-describedby", problem.id);
  else input.setAttribute("aria-describedby", problem.id);
  if (field.required && !several) input.setAttribute("aria-required", "true");
  box.addEventListener("input", () => complain(field, ""));
  return box;
}

function option(field, value, text) {
  const input = make("input", { type: "radio", name: field.name, value });
  return make("label", { class: "option" }, input, make("span", {}, text));
}

function drawChoice(field) {
  return make("div", { class: "options" }, ...field.options.map((text) => option(field, text, text)));
}

function drawScale(field) {
  const points = make("div", { class: "points" });
  for (let k = field.least; k <= field.most; k++) points.append(option(field, k, String(k)));
  const ends = field.ends.map((text) => make("span", {}, text));
  return make("div", { class: "scale" }, points, ...(ends.length ? [make("div", { class: "ends muted" }, ...ends)] : []));
}

function drawNumber(field) {
  return make("input", { type: "text", inputmode: "decimal", id: "field-" + field.name, autocomplete: "off" });
}

function drawText(field) {
  const attributes = { id: "field-" + field.name, maxlength: field.most };
  return field.kind === "long" ? make("textarea", { ...attributes, rows: 5 }) : make("input", { ...attributes, type: "text" });
}

function complain(field, text) {
  $("problem-" + field.name).textContent = text;
  const box = $("box-" + field.name);
  box.classList.toggle("wrong", Boolean(text));
  const marked = box.tagName === "FIELDSET" ? [] : [box.querySelector("input, textarea")];
  for (const input of marked) input.setAttribute("aria-invalid", String(Boolean(text)));
}

// What was put in, or null after showing what is wrong.
export function readForm() {
  const replies = {};
  let first = null;
  for (const field of fields) {
    const [value, problem] = readField(field);
    complain(field, problem);
    if (problem) first ??= field;
    else if (value !== null) replies[field.name] = value;
  }
  if (!first) return replies;
  $("box-" + first.name).querySelector("input, textarea").focus();
  return null;
}

function readField(field) {
  const picked = $("box-" + field.name).querySelector("input:checked");
  const raw = field.kind === "choice" || field.kind === "scale" ? picked?.value ?? "" : $("field-" + field.name).value.trim();
  if (!raw) return [null, field.required ? say("missing") : ""];
  if (field.kind === "scale") return [Number(raw), ""];
  if (field.kind !== "number") return [raw, ""];
  const number = Number(raw.replace(",", "."));
  if (!Number.isFinite(number)) return [null, say("not_a_number")];
  if (field.least !== null && number < field.least) return [null, say("too_small", { least: field.least })];
  if (field.most !== null && number > field.most) return [null, say("too_large", { most: field.most })];
  return [number, ""];
}
