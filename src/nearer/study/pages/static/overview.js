import { $, attempt, call, element, percent, repeat, trouble } from "./dashboard.js";

const span = (map) => map.accuracy_interval.map((share) => Math.round(100 * share)).join("–");
const plural = (n, word) => `${n} ${word}`;

function draw(status) {
  $("state").textContent = status.state;
  $("state").className = "pill " + status.state;
  $("start").hidden = status.state === "running";
  $("start").textContent = status.state === "draft" ? "Start the study" : "Continue";
  $("pause").hidden = status.state !== "running";
  $("state-text").textContent = {
    draft: "People cannot take part yet.", paused: "No questions are asked at the moment.", running: "People can take part.",
  }[status.state];
  trouble(status.trouble);
  if (!status.questions) return;
  const { questions: q, people, answers, map, remaining } = status;
  const trusted = map && map.n_holdout >= 10;
  $("enough").hidden = !status.enough && !status.exhausted;
  $("enough").textContent = status.enough ? "The study has all the answers it needs: people are thanked and paid." : "Every question has its votes; further votes go to the questions where they are most informative.";
  const cards = [
    ["Answers that count", answers.counted, `${answers.all} stored, with repeats and checks`],
    ["Questions decided", q.decided, `${q.open} open, ${q.leased} being answered`],
    ["People now", people.now, `${people.joined} joined, ${people.finished} finished, ${people.excluded} excluded`],
    ["Answers an hour", Math.round(status.answers_per_hour), remaining.hours === null ? "of the last hour" : `about ${remaining.hours} hours to go`],
    ["Hold-out accuracy", trusted ? percent(map.accuracy) : "–", !map ? "from the first answers on" : trusted ? `${span(map)} with 95 %, on ${map.n_holdout} answers no fit has seen` : `${map.n_holdout} answers that no fit has seen say too little`],
    ["Expected quality", map && status.quality.expected ? status.quality.expected.toFixed(2) : "–", status.quality.wanted < 1 ? `Kendall’s τ with the truth; ${status.quality.wanted} is enough` : "Kendall’s τ with the truth"],
    ["Dimensions", map ? map.dimension : "–", map ? `estimated from ${map.n_triplets} answers` : ""],
  ];
  $("cards").replaceChildren(...cards.map(([name, figure, more]) => element("div", { class: "card" },
    element("div", { class: "name" }, name), element("div", { class: "figure" }, String(figure)), element("div", { class: "more" }, more))));
  $("remaining").textContent = remaining.answers === null ? "0 means no limit." : plural(remaining.answers, "answers are still wanted.");
}

const refresh = async () => draw(await call("status"));
const change = (path, body) => attempt(async () => { await call(path, body); await refresh(); });
$("start").addEventListener("click", () => change("state", { state: "running" }));
$("pause").addEventListener("click", () => change("state", { state: "paused" }));
$("quota-form").addEventListener("submit", (event) => {
  event.preventDefault();
  change("settings", { settings: { quota: Number($("quota").value) } });
});

// Settings that can be changed while people answer; each change is stored with its time.
let settings = {};

async function readSettings() {
  const loaded = await call("settings");
  settings = loaded.settings;
  const simple = loaded.changeable.filter((name) => typeof settings[name] !== "object");
  const chosen = $("setting").value || simple[0];
  $("setting").replaceChildren(...simple.map((name) => element("option", { value: name }, name)));
  $("setting").value = chosen;
  $("value").value = String(settings[chosen]);
  $("changes").replaceChildren(...loaded.changes.reverse().slice(0, 10).map((change) => element("li", {},
    `${new Date(1000 * change.at).toLocaleString()}: ` + Object.entries(change.settings).map(([name, value]) => `${name} = ${JSON.stringify(value)}`).join(", "))));
}

$("setting").addEventListener("change", () => { $("value").value = String(settings[$("setting").value]); });
$("settings-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const [name, text] = [$("setting").value, $("value").value];
  const kind = typeof settings[name];
  const value = kind === "number" ? Number(text) : kind === "boolean" ? text.trim() === "true" : text;
  changeSetting(name, value);
});

// What is wrong with a value is said beside it, and stays until another one is tried.
async function changeSetting(name, value) {
  const problem = $("setting-error");
  problem.hidden = true;
  try {
    await call("settings", { settings: { [name]: value } });
    await readSettings();
    await refresh();
  } catch (error) {
    problem.textContent = error.message || "The server cannot be reached.";
    problem.hidden = false;
  }
}
attempt(readSettings);

repeat(refresh, 2000);
