// One question on the page. Its `task` says what is to be done with the things in `shown`:
// "two": which of both is more like `head`; "choose": which k are; "rank": which k, best first;
// "odd": which one is least like the others, without a head. `choose` is k, 1 if it is missing.
// The answer is { choice: "left" | "right" } for two, { choice: "chosen", chosen: [ids] } for more.

import { $, say } from "./words.js";
import { fillIn, player } from "./media.js";

// Milliseconds in which a new question takes no answer. A double click ends within 500 ms, most in
// 200; comparing three things takes more than 300.
const GUARD = 300;
// Longest text: how large all texts are written (see the style sheet)
const LENGTHS = [[24, "short"], [90, "medium"], [300, "long"], [Infinity, "longest"]];

let shown = null;      // the question on the page
let shownAt = null;    // when everything was visible
let chosen = [];       // places of the chosen ones, in the order they were chosen
let answered = null;   // called with what is given, and milliseconds

const isTwo = (trial) => trial.task === "two";

export const thingsOf = ({ head, shown }) => (head ? [head, ...shown] : shown);

export function surroundedBy(colour) {
  const [r, g, b] = [1, 3, 5].map((k) => (parseInt(colour.slice(k, k + 2), 16) / 255) ** 2.2);
  const root = document.documentElement.style;
  root.setProperty("--surround", colour);
  root.setProperty("--surround-ink", 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#000000" : "#ffffff");
}

// Draw a question; `onAnswer` gets what is chosen. Resolves to whether it is what the page shows.
export async function draw(trial, { question, task, count, mustPlay, onAnswer }) {
  const mine = shown = trial;
  answered = onAnswer;
  shownAt = null;
  chosen = [];
  const box = $("things");
  box.className = "things loading " + (isTwo(shown) ? "pair" : "grid");
  box.dataset.ready = "";
  $("ask").textContent = shown.task === task ? question : ask(shown);
  $("next").hidden = shown.choose < 2;
  hint("");
  const players = [];
  const played = () => enable(players, mustPlay);
  const tiles = shown.shown.map((thing, k) => tile(thing, k, players, played));
  if (shown.head) tiles.unshift(tile(shown.head, null, players, played));
  box.replaceChildren(...tiles.map(({ element }) => element));
  const longest = Math.max(0, ...thingsOf(shown).filter((t) => t.kind === "text").map((t) => t.text.length));
  box.dataset.length = LENGTHS.find(([most]) => longest <= most)[1];
  box.dataset.texts = longest ? "yes" : "";
  fit();
  progress();
  $("ask").focus({ preventScroll: true });
  window.scrollTo(0, 0);
  const late = setTimeout(() => { if (mine === shown) hint(say("slow")); }, 5000);
  await Promise.all(tiles.map(({ ready }) => ready));
  clearTimeout(late);
  if (mine !== shown) return false;
  hint("");
  box.classList.remove("loading");
  enable(players, mustPlay);
  keys();
  requestAnimationFrame(() => requestAnimationFrame(() => {
    if (mine === shown) shownAt = performance.now();
  }));
  const things = thingsOf(shown).map((thing, k) => named(thing, shown.head ? k - 1 : k)).join(", ");
  $("spoken").textContent = say("spoken", { count, question: $("ask").textContent, things });
  return true;
}

export function clear() {
  shown = null;
  shownAt = null;
  $("things").classList.add("loading");
}

// The question, if the study's own text is for another task.
function ask(trial) {
  if (isTwo(trial)) return say("question");
  if (trial.task === "odd") return say("ask_odd");
  if (trial.choose === 1) return say("ask_closest");
  return say(trial.task === "rank" ? "ask_rank" : "ask_several", { k: trial.choose });
}

// The name of a thing for people who do not see it: its description, or else its place.
function named(thing, k) {
  if (thing.text || thing.alt) return thing.text || thing.alt;
  if (k === null || k < 0) return say("at_the_top");
  if (isTwo(shown)) return say(k ? "on_the_right" : "on_the_left");
  return say("number", { n: k + 1 });
}

function tile(thing, k, players, played) {
  const plays = thing.kind === "audio" || thing.kind === "video";
  const isChoice = k !== null;
  const element = document.createElement(isChoice && !plays ? "button" : "div");
  element.className = "thing";
  element.id = isChoice ? (isTwo(shown) ? ["left", "right"][k] : `choice-${k}`) : "head";
  const { content, ready } = inside(thing, k, plays, players, played);
  element.append(content);
  if (!isChoice) return { element, ready };
  const button = plays ? document.createElement("button") : element;
  if (plays) {
    button.textContent = say("choose_this");
    element.append(button);
  }
  button.type = "button";
  button.dataset.place = k;
  button.setAttribute("aria-describedby", "hint");
  if (shown.choose > 1) button.setAttribute("aria-pressed", "false");
  button.addEventListener("click", (event) => {
    if (event.detail < 2) pick(k);  // the second click of a double click was meant for the first
  });
  return { element, ready };
}

function inside(thing, k, plays, players, played) {
  if (thing.kind === "text") {
    const content = document.createElement("span");
    content.className = "text";
    content.dir = "auto";
    content.textContent = thing.text;
    return { content, ready: null };
  }
  const content = plays ? player(thing.kind, played) : document.createElement("img");
  if (plays) {
    content.setAttribute("aria-label", named(thing, k));
    players.push(content);
  } else {
    content.alt = named(thing, k);
    content.draggable = false;
  }
  return { content, ready: fillIn(content, thing.src) };
}

const choices = () => [...$("things").querySelectorAll("button[data-place]")];

// While sounds must still be played, buttons stay reachable and show what is missing.
function enable(players, mustPlay) {
  const n = players.filter((p) => p.dataset.played).length;
  const ready = !mustPlay || n === players.length;
  $("things").dataset.ready = ready ? "yes" : "";
  for (const button of choices()) button.setAttribute("aria-disabled", String(!ready));
  if (!ready) hint(say("play_first", { n, total: players.length }));
  else progress();
}

function hint(text) { $("hint").textContent = text; }

function progress() {
  if (!shown || shown.choose < 2) return hint("");
  hint(say("chosen", { n: chosen.length, k: shown.choose }));
  $("next").setAttribute("aria-disabled", String(chosen.length !== shown.choose));
}

const awake = () => shown && shownAt !== null && performance.now() - shownAt >= GUARD;

function pick(k) {
  if (!awake() || !$("things").dataset.ready) return;
  if (isTwo(shown)) return give({ choice: ["left", "right"][k] });
  if (shown.choose === 1) return giveChosen([k]);
  if (chosen.includes(k)) chosen = chosen.filter((other) => other !== k);
  else if (chosen.length === shown.choose) return hint(say("enough", { k: shown.choose }));
  else chosen = [...chosen, k];
  choices().forEach((button, place) => {
    button.setAttribute("aria-pressed", String(chosen.includes(place)));
    const tile = button.closest(".thing");
    tile.classList.toggle("chosen", chosen.includes(place));
    tile.dataset.mark = shown.task === "rank" ? chosen.indexOf(place) + 1 : "✓";
  });
  progress();
}

const giveChosen = (places) => give({ choice: "chosen", chosen: places.map((k) => shown.shown[k].id) });

function give(answer) {
  if (awake()) answered(answer, Math.round((performance.now() - shownAt) * 10) / 10);
}

export function rest() { shownAt = null; }

$("next").addEventListener("click", (event) => {
  if (event.detail < 2 && shown && chosen.length === shown.choose) giveChosen(chosen);
});
$("undecided").addEventListener("click", (event) => { if (event.detail < 2) give({ choice: "undecided" }); });
$("skip").addEventListener("click", (event) => { if (event.detail < 2) give({ choice: "skip" }); });

// A side is lit only by a pointer that moves: one that rests where the last answer was given would
// light a side of the next question, and people follow it.
document.addEventListener("pointermove", (event) => {
  if (event.pointerType === "mouse" && (event.movementX || event.movementY)) $("things").classList.add("lively");
});

// Keys ----------------------------------------------------------------------------------------

const overflows = () => document.documentElement.scrollHeight > document.documentElement.clientHeight + 1;

function keys() {
  const made = [];
  const add = (key, text) => {
    const label = document.createElement("kbd");
    label.textContent = key;
    made.push(made.length ? "  " : "", label, " " + text);
  };
  if (isTwo(shown)) {
    add("←", say("key_left"));
    add("→", say("key_right"));
    if (!$("undecided").hidden && !overflows()) add("↓", say("key_undecided"));
  } else {
    add("← ↑ ↓ →", say("key_move"));
    add(say("key_space"), say("key_choose"));
  }
  $("keys").replaceChildren(...made);
}

document.addEventListener("keydown", (event) => {
  if ($("trial").hidden || !shown || event.repeat || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
  if (/^(AUDIO|VIDEO|INPUT)$/.test(event.target.tagName)) return;
  const used = isTwo(shown) ? pairKey(event.key) : gridKey(event.key);
  if (used) event.preventDefault();
});

function pairKey(key) {
  if (key === "ArrowLeft") pick(0);
  else if (key === "ArrowRight") pick(1);
  else if (key === "ArrowDown" && !overflows() && !$("undecided").hidden) give({ choice: "undecided" });
  else return false;  // what scrolls, scrolls
  return true;
}

function gridKey(key) {
  const all = choices();
  if (/^[1-9]$/.test(key) && all[key - 1]) {
    all[key - 1].focus();
    pick(key - 1);
    return true;
  }
  const columns = Number(getComputedStyle($("things")).getPropertyValue("--columns")) || 1;
  const onward = document.documentElement.dir === "rtl" ? -1 : 1;
  const step = { ArrowLeft: -onward, ArrowRight: onward, ArrowUp: -columns, ArrowDown: columns }[key];
  if (!step) return false;
  const at = all.indexOf(document.activeElement);
  (all[at < 0 ? 0 : at + step] ?? all[at]).focus();
  return true;
}

// Sizes ---------------------------------------------------------------------------------------

// Everything is shown at one size, the largest at which a grid fits the screen, and never so small
// that it cannot be seen or read; if needed, rows break and the page is scrolled.
const MOST = 384, FRAME = 17, GAP = 12, AROUND = 240;  // pixels; AROUND: all but the grid
const LEAST = { short: 80, medium: 120, long: 200, longest: 260 };  // by the longest text

function fit() {
  if (!shown || isTwo(shown)) return;
  const m = shown.shown.length;
  const width = Math.min(innerWidth, 960) - 32;
  const height = innerHeight - AROUND;
  const room = (space, count) => (space - (count - 1) * GAP) / count - FRAME;
  const { length } = $("things").dataset;
  const fits = Math.max(1, Math.min(m, Math.floor((width + GAP) / (LEAST[length] + FRAME + GAP))));
  let best = [length === "short" ? LEAST.short - 1 : Math.min(room(width, fits), MOST), fits];
  for (let columns = 1; columns <= m && length === "short"; columns++) {
    const rows = Math.ceil(m / columns) + (shown.head ? 1 : 0);
    const side = Math.min(room(width, columns), room(height, rows), MOST);
    if (side > best[0]) best = [side, columns];
  }
  const style = $("things").style;
  style.setProperty("--side", Math.floor(best[0]) + "px");
  style.setProperty("--columns", best[1]);
}

window.addEventListener("resize", () => { if (shown) { fit(); keys(); } });
