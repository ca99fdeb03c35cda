import { $, attempt, call, element, percent, repeat } from "./dashboard.js";

const seconds = (ms) => (ms === null ? "–" : (ms / 1000).toFixed(1) + " s");
const of = (some, all) => (all ? `${some} of ${all}` : "–");
// A share of few repeats says little, and the interval says how little.
const agreement = ({ agreement: share, agreement_interval: span, repeats_total: total }) =>
  share === null ? "–" : `${percent(share)} (${Math.round(100 * span[0])}–${Math.round(100 * span[1])}) of ${total}`;
const cell = (text) => element("td", { class: "number" }, String(text));

function row(person) {
  const act = (verb) => attempt(async () => { await call(`people/${person.id}/${verb}`, {}); await refresh(); });
  const flags = person.warnings.map((text) => element("span", { class: "flag" }, text));
  if (person.withdrawn) flags.push(element("span", { class: "flag" }, "withdrew"));
  else if (person.excluded) flags.push(element("span", { class: "flag" }, "excluded"));
  const toggle = element("button", { class: "small", onclick: () => act(person.excluded ? "include" : "exclude") },
    person.excluded ? "Include" : "Exclude");
  const erase = element("button", { class: "small danger", onclick: () => {
    if (confirm(`Delete the identity and all answers of ${person.pseudonym} for good?`)) act("withdraw");
  } }, "Erase");
  toggle.setAttribute("aria-label", `${toggle.textContent} ${person.pseudonym}`);
  erase.setAttribute("aria-label", `Erase ${person.pseudonym}`);
  return element("tr", { class: person.excluded ? "out" : null },
    element("th", { scope: "row" }, person.pseudonym),
    element("td", {}, person.external),
    cell(person.answered), cell(seconds(person.median_ms)),
    cell(of(person.catch_failed, person.catch_total)), cell(agreement(person)),
    cell(person.answered < 10 ? "–" : percent(person.left_share)),  // of few answers it says nothing
    cell(`${person.undecided}, ${person.skipped}`),
    element("td", {}, ...flags),
    element("td", {}, element("div", { class: "row" }, ...(person.withdrawn ? [] : [toggle, erase]))));
}

let people = [];
let key = null;       // the column by which they are sorted; newest first without one
let upwards = true;

const value = (person) => (key === "flags" ? -person.warnings.length : person[key]);

function compare(one, other) {
  const [a, b] = [value(one), value(other)];
  if (a === b) return 0;
  if (a === null || a === "") return 1;  // who has none comes last either way
  if (b === null || b === "") return -1;
  return (a < b ? -1 : 1) * (upwards ? 1 : -1);
}

function draw() {
  const wanted = $("search").value.trim().toLowerCase();
  const text = (p) => [p.pseudonym, p.panel, p.external, ...p.warnings, p.excluded ? "excluded" : ""].join(" ").toLowerCase();
  const matches = people.filter((person) => text(person).includes(wanted));
  if (key) matches.sort(compare);
  $("people").replaceChildren(...matches.map(row));
  $("empty").hidden = people.length > 0;
  $("matches").textContent = wanted ? `${matches.length} of ${people.length}` : "";
}

async function refresh() {
  people = await call("people");
  draw();
  const { flags } = await call("status");
  $("judged").textContent = Object.entries(flags || {}).map(([name, flag]) => `${name}: ${flag.flagged} of ${flag.judged}`).join(" · ") + " people with enough answers";
}

$("search").addEventListener("input", draw);
for (const button of document.querySelectorAll(".sort")) {
  button.addEventListener("click", () => {
    upwards = key === button.dataset.key ? !upwards : true;
    key = button.dataset.key;
    for (const other of document.querySelectorAll(".sort")) other.closest("th").removeAttribute("aria-sort");
    button.closest("th").setAttribute("aria-sort", upwards ? "ascending" : "descending");
    draw();
  });
}

repeat(async () => { if (!document.activeElement?.closest("tbody")) await attempt(refresh); }, 5000);
