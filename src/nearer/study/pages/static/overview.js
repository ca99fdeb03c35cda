import { $, attempt, call, element, percent, trouble } from "./desk.js";

const plural = (n, word) => `${n} ${word}`;

function draw(status) {
  $("state").textContent = status.state;
  $("state").className = "pill " + status.state;
  $("start").hidden = status.state === "running";
  $("start").textContent = status.state === "draft" ? "Start the study" : "Go on";
  $("pause").hidden = status.state !== "running";
  $("state-text").textContent = {
    draft: "Nobody can take part yet.", paused: "Nobody is asked at the moment.", running: "People can take part.",
  }[status.state];
  trouble(status.trouble);
  if (!status.questions) return;
  const { questions: q, people, answers, map, remaining } = status;
  const cards = [
    ["Answers that count", answers.counted, `${answers.all} stored, with repeats and checks`],
    ["Questions decided", q.decided, `${q.open} open, ${q.leased} being answered`],
    ["People now", people.now, `${people.joined} joined, ${people.finished} finished, ${people.excluded} excluded`],
    ["Answers an hour", Math.round(status.answers_per_hour), remaining.hours === null ? "of the last hour" : `about ${remaining.hours} hours to go`],
    ["Hold-out accuracy", map ? percent(map.accuracy) : "–", map ? `on ${map.n_holdout} answers no fit has seen` : "from the first answers on"],
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
  change("quota", { quota: Number($("quota").value) });
});

async function loop() {
  try { await refresh(); } catch (error) { trouble(error.message || "The server cannot be reached."); }
  setTimeout(loop, 2000);
}
loop();
