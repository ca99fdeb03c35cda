// The participant's page. Answers go into a queue in the browser first and leave it only when the
// server says that they are stored, so neither a lost connection nor a closed tab loses one.

import { $, say, why } from "./words.js";
import { memory, Queue } from "./storage.js";
import { keepOnly, preload } from "./media.js";
import { clear, draw, rest, surroundedBy, thingsOf } from "./question.js";
import { drawForm, readForm } from "./form.js";

const sections = ["loading", "consent", "form", "instructions", "trial", "paused", "finished"];
const parameters = Object.fromEntries(new URLSearchParams(location.search));

let about = null;        // the study's texts
let token = null;        // who I am
let queue = null;        // answers that the server has not confirmed
let trials = [];         // questions in hand, the first one is shown
let standing = null;     // what the server said last
let busy = false;        // a request for sending is under way
let wait = 500;          // milliseconds until the next try
let practice = null;     // questions to practise on, while practising
let current = null;      // the trial on the page
let again = false;       // whether that is the last one, to be answered once more

function show(name) {
  for (const id of sections) $(id).hidden = id !== name;
  if (name === "trial") return;
  $(name).querySelector("h1")?.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

async function call(path, body) {
  const options = { method: body === undefined ? "GET" : "POST", headers: {} };
  if (token) options.headers.authorization = "Bearer " + token;
  if (body !== undefined) {
    options.headers["content-type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const reply = await fetch("api/" + path, options);
  if (!reply.ok) throw Object.assign(new Error(reply.statusText), { status: reply.status });
  return reply.json();
}

// Start ---------------------------------------------------------------------------------------

function panelIdentity() {
  for (const parameter of Object.values(about.panels)) if (parameters[parameter]) return parameters[parameter];
  return "";
}

async function start() {
  try {
    about = await call("study");
  } catch {
    $("loading").firstElementChild.textContent = say("unreachable_waiting");
    setTimeout(start, 3000);
    return;
  }
  document.title = about.title;
  surroundedBy(about.surround);
  if (about.lab) memory.onlyInThisTab();
  const known = memory.get("me");
  if (known && isMe(known)) become(known.token);
  if (!token) return askConsent();
  await resume();
}

// Whether the link belongs to the person stored in this browser: a panel's name or personal link in
// it must be theirs.
function isMe(known) {
  if (parameters.resume) return known.resume === parameters.resume;
  return !panelIdentity() || known.identity === panelIdentity();
}

function become(who) {
  token = who;
  queue = new Queue(token);
  queue.watch(answeredElsewhere);
}

function forget() {
  token = null;
  queue = null;
  Queue.forget();
  memory.set("me", null);
}

// A secret that only this browser has: it proves the person who began here.
function browserKey() {
  const made = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const key = memory.get("browser") || made;
  memory.set("browser", key);
  return key;
}

async function resume() {
  try {
    take(await call("me"));
    send();
  } catch (error) {
    if ([401, 404, 410].includes(error.status)) {
      forget();
      if (error.status !== 410) return askConsent();
      memory.set("browser", null);
      return stop("withdrawn_title", "withdrawn_before");
    }
    setTimeout(resume, 3000);
  }
}

function askConsent() {
  if (!about.open && !token && !panelIdentity() && !parameters.resume) return stop("closed_title", "closed");
  $("consent-title").textContent = about.title;
  $("consent-text").innerHTML = about.html.consent;  // made of Markdown by the server, as below
  const more = [about.contact && say("contact", { contact: about.contact }), say("consent_version", { version: about.consent_version })];
  $("consent-more").textContent = more.filter(Boolean).join("  ·  ");
  show("consent");
}

$("agree").addEventListener("click", async () => {
  $("agree").disabled = true;
  try {
    const reply = await call(token ? "consent" : "join", { consent_version: about.consent_version, parameters, browser: browserKey() });
    if (reply.token) {
      forget();
      become(reply.token);
      memory.set("me", { token, identity: panelIdentity(), resume: parameters.resume });
    }
    take(reply);
  } catch (error) {
    await refuse(error);
  }
  $("agree").disabled = false;
});

// No entry: the study has closed, its consent text has changed, or there is another reason.
async function refuse(error) {
  const before = about.consent_version;
  if (error.status === 409) about = await call("study").catch(() => about);
  if (error.status === 409 && !about.open) return stop("closed_title", "closed");
  if (about.consent_version !== before) return askConsent();
  $("consent-error").textContent = why(error);
  $("consent-error").hidden = false;
}

function stop(title, text) {
  current = null;
  $("paused-title").textContent = say(title);
  $("paused-text").textContent = say(text);
  show("paused");
}

// What the server says ------------------------------------------------------------------------

function take(reply) {
  standing = reply;
  const held = new Set(trials.map((trial) => trial.lease));
  const fresh = reply.trials.filter((trial) => !queue.has(trial.lease) && !held.has(trial.lease));
  trials = trials.concat(fresh);
  preload(fresh.flatMap(thingsOf));
  offerUndo();
  if (reply.stage === "consent") return askConsent();
  if (reply.stage === "page") return fillOut(reply.page);
  if (reply.stage === "instructions") return practice ? undefined : instruct();
  if (reply.stage === "screened") return screenOut();
  if (reply.stage === "finished" && !queue.length) return finish();
  if (reply.stage === "paused" && !trials.length) {
    setTimeout(resume, 10000);
    return stop("paused_title", "paused");
  }
  if (!current) next();
}

// Another tab has answered: continue from there instead of asking the same again.
function answeredElsewhere(lease) {
  trials = trials.filter((trial) => trial.lease !== lease);
  if (current?.lease !== lease) return;
  current = null;
  next();
  setTimeout(resume, 500);
}

function fillOut(page) {
  current = null;
  drawForm(page);
  show("form");
}

$("form-fields").addEventListener("submit", async (event) => {
  event.preventDefault();
  const replies = readForm();
  $("form-error").hidden = true;
  if (!replies) return;
  $("form-send").disabled = true;
  try {
    take(await call("page", { page: standing.page.id, replies }));
  } catch (error) {
    $("form-error").textContent = say({ 422: "check" }[error.status] ?? (error.status ? "refused" : "unreachable"));
    $("form-error").hidden = false;
  }
  $("form-send").disabled = false;
});

function instruct() {
  $("instructions-text").innerHTML = about.html.instructions;
  $("instructions-more").textContent = say("length", { n: about.questions });
  $("resume").hidden = !standing.resume;
  if (standing.resume) $("resume-link").textContent = new URL(standing.resume, new URL(".", document.baseURI));
  $("begin").textContent = say(about.practice.length ? "try_first" : "start");
  show("instructions");
}

$("begin").addEventListener("click", () => {
  if (!about.practice.length) return ready();
  practice = about.practice.slice();
  preload(practice.flatMap(thingsOf));
  next();
});

async function ready() {
  practice = null;
  current = null;
  try {
    take(await call("ready", {}));
  } catch {
    setTimeout(ready, 2000);
  }
}

// A question ----------------------------------------------------------------------------------

function next() {
  current = again ? standing.last : (practice || trials)[0] || null;
  if (!current) return clear();
  keepOnly([current, ...trials, ...(practice || [])].flatMap(thingsOf));
  const total = practice ? about.practice.length : standing.questions;
  const count = say(practice ? "practice_count" : "count", { number: current.number, total });
  $("feedback").hidden = true;
  $("count").textContent = count;
  $("bar").max = total;
  $("bar").value = current.number - 1;
  $("undecided").hidden = Boolean(practice) || !about.can_be_undecided;
  $("skip").hidden = Boolean(practice) || !about.can_skip;
  offerUndo();
  show("trial");
  draw(current, { question: about.question, task: about.task, count, mustPlay: about.must_play, onAnswer: practice ? practise : answer });
}

function answer(given, response_ms) {
  queue.add({ lease: current.lease, ...given, response_ms, ...(again ? { instead: true } : {}) });
  trials = trials.filter((trial) => trial.lease !== current.lease);
  again = false;
  current = null;
  next();
  send();
}

function practise({ choice, chosen }) {
  const picked = chosen ?? [current.shown[choice === "right" ? 1 : 0].id];
  const right = current.task === "rank" ? picked[0] === current.expected : picked.includes(current.expected);
  $("feedback").hidden = false;
  $("feedback").className = right ? "note" : "note warn";
  const last = practice.length === 1;
  const odd = current.task === "odd";
  const praise = last ? "exactly_last" : odd ? "exactly_odd" : "exactly";
  $("feedback").textContent = say(right ? praise : odd ? "look_again_odd" : "look_again");
  if (!right) return;
  rest();
  setTimeout(() => {
    practice.shift();
    current = null;
    if (practice.length) next(); else ready();
  }, last ? 1800 : 900);
}

// The last question can be answered again until the next answer, as long as the server allows it.
function offerUndo() {
  const offered = !practice && !again && standing?.last && !queue?.length;
  $("undo").hidden = !offered;
}

$("undo").addEventListener("click", () => {
  again = true;
  next();
  $("feedback").className = "note";
  $("feedback").textContent = say("undone");
  $("feedback").hidden = false;
});

// Sending -------------------------------------------------------------------------------------

async function send() {
  if (busy || !queue?.length) return;
  busy = true;
  const batch = queue.waiting.slice(0, 50);
  try {
    const reply = await call("answers", { answers: batch });
    settle(new Set([...reply.stored, ...Object.keys(reply.refused).map(Number)]));
    wait = 500;
    busy = false;
    take(reply);
    send();
  } catch (error) {
    busy = false;
    if ([403, 409, 422].includes(error.status)) {  // it will never be taken; the others may be
      settle(new Set([batch[0].lease]));
      return queue.length ? send() : resume();
    }
    if ([401, 404, 410].includes(error.status)) return resume();
    $("waiting").textContent = say("kept", { n: queue.length });
    $("waiting").hidden = false;
    setTimeout(send, wait);
    wait = Math.min(wait * 2, 15000);
  }
}

function settle(done) {
  queue.settle(done);
  $("waiting").hidden = true;
}

window.addEventListener("online", () => { wait = 500; send(); });

// End -----------------------------------------------------------------------------------------

function finish() {
  end(say("done"), about.html.debrief);
  $("enough").hidden = !standing.enough;
}

function screenOut() {
  const text = document.createElement("p");
  text.textContent = say("screened");
  end(say("screened_title"), about.html.screen_out || text.outerHTML);
  $("stored").hidden = true;
}

function end(title, html) {
  current = null;
  trials = [];
  $("finished-title").textContent = title;
  $("debrief").innerHTML = html;
  $("code-box").hidden = !standing.completion.code;
  $("code").textContent = standing.completion.code;
  const back = standing.completion.redirect;
  $("return").hidden = !back;
  if (back) $("return").href = back;
  $("next-person").hidden = !about.lab;
  show("finished");
}

// The next person at this computer starts from the beginning, and cannot go back to this page.
$("next-person").addEventListener("click", () => {
  forget();
  memory.set("browser", null);
  location.replace(new URL(".", document.baseURI));
});

$("withdraw").addEventListener("click", async () => {
  if (!confirm(say("withdraw_sure"))) return;
  try {
    await call("withdraw", {});
    forget();
    memory.set("browser", null);
    for (const id of ["withdraw", "code-box", "stored", "enough"]) $(id).hidden = true;
    $("withdrawn").textContent = say("withdrawn");
  } catch {
    $("withdrawn").textContent = say("withdraw_failed");
  }
  $("withdrawn").hidden = false;
});

start();
