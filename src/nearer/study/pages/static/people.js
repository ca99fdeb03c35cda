import { $, attempt, call, element, percent } from "./desk.js";

const seconds = (ms) => (ms === null ? "–" : (ms / 1000).toFixed(1) + " s");
const of = (some, all) => (all ? `${some} of ${all}` : "–");
const cell = (text) => element("td", { class: "number" }, String(text));

function row(person) {
  const act = (verb, body) => attempt(async () => { await call(`people/${person.id}/${verb}`, body); await refresh(); });
  const flags = person.warnings.map((text) => element("span", { class: "flag" }, text));
  if (person.withdrawn) flags.push(element("span", { class: "flag" }, "withdrew"));
  else if (person.excluded) flags.push(element("span", { class: "flag" }, "excluded"));
  const toggle = element("button", { class: "small", onclick: () => act(person.excluded ? "include" : "exclude", person.excluded ? null : {}) },
    person.excluded ? "Include" : "Exclude");
  const erase = element("button", { class: "small danger", onclick: () => {
    if (confirm(`Delete the identity and all answers of ${person.pseudonym} for good?`)) act("withdraw", null);
  } }, "Erase");
  toggle.setAttribute("aria-label", `${toggle.textContent} ${person.pseudonym}`);
  erase.setAttribute("aria-label", `Erase ${person.pseudonym}`);
  return element("tr", { class: person.excluded ? "out" : null },
    element("th", { scope: "row" }, person.pseudonym),
    cell(person.answered), cell(seconds(person.median_ms)),
    cell(of(person.catch_failed, person.catch_total)), cell(of(person.repeats_agreed, person.repeats_total)),
    cell(percent(person.left_share)), cell(`${person.undecided}, ${person.skipped}`),
    element("td", {}, ...flags),
    element("td", {}, element("div", { class: "row" }, ...(person.withdrawn ? [] : [toggle, erase]))));
}

async function refresh() {
  const people = await call("people");
  $("people").replaceChildren(...people.map(row));
  $("nobody").hidden = people.length > 0;
}

async function loop() {
  if (!document.activeElement?.closest("tbody")) await attempt(refresh);
  setTimeout(loop, 5000);
}
loop();
