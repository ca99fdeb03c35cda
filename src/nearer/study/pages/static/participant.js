// The participant's page. Answers go into a queue in the browser first and leave it only when the
// server says that they are stored, so neither a lost connection nor a closed tab loses one.

const $ = (id) => document.getElementById(id);
const sections = ["loading", "consent", "instructions", "trial", "paused", "finished"];
const parameters = Object.fromEntries(new URLSearchParams(location.search));

const memory = {
  get(key) { try { return JSON.parse(localStorage.getItem("nearer." + key)); } catch { return null; } },
  set(key, value) { try { localStorage.setItem("nearer." + key, JSON.stringify(value)); } catch { /* private mode */ } },
};

let about = null;        // the study's texts
let token = null;        // who I am
let queue = [];          // answers that the server has not confirmed
let trials = [];         // questions in hand, the first one is shown
let standing = null;     // what the server said last
let shownAt = null;      // when all three were visible
let busy = false;        // a request for sending is under way
let wait = 500;          // milliseconds until the next try
let practice = null;     // questions to practise on, while practising
let current = null;      // the trial on the page

function show(name) {
  for (const id of sections) $(id).hidden = id !== name;
  const heading = $(name).querySelector("h1");
  if (heading && name !== "trial") heading.focus({ preventScroll: true });
  if (name !== "trial") window.scrollTo(0, 0);
}

// A secret of this browser, made once: who has it is the person who began here.
function browserKey() {
  const key = memory.get("browser") || Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
  memory.set("browser", key);
  return key;
}

async function call(path, body) {
  const options = { method: body === undefined ? "GET" : "POST", headers: {} };
  if (token) options.headers.authorization = "Bearer " + token;
  if (body !== undefined) {
    options.headers["content-type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const reply = await fetch("/api/" + path, options);
  const data = await reply.json().catch(() => ({}));
  if (!reply.ok) throw Object.assign(new Error(data.detail || reply.statusText), { status: reply.status });
  return data;
}

// Start ---------------------------------------------------------------------------------------

function panelIdentity() {
  for (const parameter of Object.values(about.panels)) if (parameters[parameter]) return parameters[parameter];
  return "";
}

async function start() {
  try {
    about = await call("study");
  } catch (error) {
    $("loading").firstElementChild.textContent = "The study cannot be reached. Trying again …";
    setTimeout(start, 3000);
    return;
  }
  document.title = about.title;
  const known = memory.get("me");
  if (known && (!panelIdentity() || known.identity === panelIdentity())) token = known.token;
  if (!token) return askConsent();
  queue = memory.get("queue") || [];
  await resume();
}

async function resume() {
  try {
    take(await call("me"));
    if (queue.length) send();
  } catch (error) {
    if ([401, 404, 410].includes(error.status)) {
      token = null;
      queue = [];
      memory.set("me", null);
      memory.set("queue", []);
      if (error.status === 410) return stop("You withdrew", error.message);
      return askConsent();
    }
    setTimeout(resume, 3000);
  }
}

function askConsent() {
  if (!about.open && !token && !panelIdentity()) {
    return stop("This study is not open", "It has not started, is paused, or has all the answers it needs. Thank you for coming.");
  }
  $("consent-title").textContent = about.title;
  $("consent-text").textContent = about.consent;
  $("consent-more").textContent = [about.contact && "Questions? " + about.contact, "Consent version " + about.consent_version + "."].filter(Boolean).join("  ·  ");
  show("consent");
}

$("agree").addEventListener("click", async () => {
  $("agree").disabled = true;
  try {
    const reply = await call(token ? "consent" : "join", { consent_version: about.consent_version, parameters, browser: browserKey() });
    if (reply.token) {
      token = reply.token;
      memory.set("me", { token, identity: panelIdentity() });
      memory.set("queue", []);
      queue = [];
    }
    take(reply);
  } catch (error) {
    $("consent-error").textContent = error.status ? error.message : "The study cannot be reached just now. Please try again.";
    $("consent-error").hidden = false;
  }
  $("agree").disabled = false;
});

function stop(title, text) {
  $("paused-title").textContent = title;
  $("paused-text").textContent = text;
  show("paused");
}

// What the server says ------------------------------------------------------------------------

function take(reply) {
  standing = reply;
  const waiting = new Set(queue.map((answer) => answer.lease));
  const held = new Set(trials.map((trial) => trial.lease));
  const fresh = reply.trials.filter((trial) => !waiting.has(trial.lease) && !held.has(trial.lease));
  trials = trials.concat(fresh);
  fresh.forEach(preload);
  if (reply.stage === "consent") return askConsent();
  if (reply.stage === "instructions") return practice ? undefined : instruct();
  if (reply.stage === "finished" && !queue.length) return finish();
  if (reply.stage === "paused" && !trials.length) {
    setTimeout(resume, 10000);
    return stop("A short break", "The study is paused. Your answers are stored; this page goes on by itself when the study does.");
  }
  if (!current) next();
}

function instruct() {
  $("instructions-text").textContent = about.instructions;
  $("instructions-more").textContent = about.questions + " questions. You can take a break at any time and go on later on this device.";
  $("begin").textContent = about.practice.length ? "Try it out first" : "Start";
  show("instructions");
}

$("begin").addEventListener("click", () => {
  if (!about.practice.length) return ready();
  practice = about.practice.slice();
  practice.forEach(preload);
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

const loaded = new Map();  // src: promise that its picture or sound is ready

function preload(trial) {
  for (const thing of [trial.head, trial.left, trial.right]) {
    if (thing.kind === "image" && !loaded.has(thing.src)) {
      const image = new Image();
      image.src = thing.src;
      loaded.set(thing.src, image.decode().catch(() => undefined));
    } else if (thing.src && !loaded.has(thing.src)) {
      loaded.set(thing.src, fetch(thing.src).then((r) => r.blob()).catch(() => undefined));
    }
  }
}

function next() {
  current = (practice || trials)[0] || null;
  if (!current) {
    $("triad").classList.add("loading");
    return;
  }
  show("trial");
  draw(current);
}

async function draw(trial) {
  shownAt = null;
  $("triad").classList.add("loading");
  $("feedback").hidden = true;
  const total = practice ? about.practice.length : standing.questions;
  $("count").textContent = practice ? `Practice ${trial.number} of ${total}` : `${trial.number} of ${total}`;
  $("bar").max = total;
  $("bar").value = trial.number - 1;
  $("ask").textContent = about.question;
  $("undecided").hidden = Boolean(practice) || !about.can_be_undecided;
  $("down-key").hidden = $("undecided").hidden;
  $("skip").hidden = Boolean(practice) || !about.can_skip;
  const players = [];
  fill("head", trial.head, null, players);
  fill("left", trial.left, "left", players);
  fill("right", trial.right, "right", players);
  const images = [...$("triad").querySelectorAll("img")];
  await Promise.all(images.map((image) => image.decode().catch(() => undefined)));
  if (trial !== current) return;
  $("triad").classList.remove("loading");
  enable(!about.must_play || !players.length);
  requestAnimationFrame(() => requestAnimationFrame(() => {
    if (trial === current) shownAt = performance.now();
  }));
  $("spoken").textContent = `${$("count").textContent}. ${about.question} ${name(trial.head)}: ${name(trial.left)}, or ${name(trial.right)}?`;
}

const name = (thing) => thing.text || thing.alt;

function fill(id, thing, side, players) {
  const simple = thing.kind === "text" || thing.kind === "image";
  const box = document.createElement(side && simple ? "button" : "div");
  box.id = id;
  box.className = side ? "thing choice" : "thing head";
  if (thing.kind === "image") {
    const image = document.createElement("img");
    image.src = thing.src;
    image.alt = thing.alt;
    image.draggable = false;
    box.append(image);
  } else if (thing.kind === "text") {
    const text = document.createElement("span");
    text.className = "text";
    text.textContent = thing.text;
    box.append(text);
  } else {
    const player = document.createElement(thing.kind);
    player.controls = true;
    player.preload = "auto";
    player.src = thing.src;
    player.setAttribute("aria-label", thing.alt);
    player.dataset.played = "";
    player.addEventListener("ended", () => {
      player.dataset.played = "yes";
      enable(players.every((p) => p.dataset.played));
    });
    players.push(player);
    box.append(player);
  }
  if (side && !simple) {
    const button = document.createElement("button");
    button.textContent = "Choose this one";
    button.dataset.side = side;
    button.addEventListener("click", () => choose(side));
    box.append(button);
  } else if (side) {
    box.dataset.side = side;
    box.addEventListener("click", () => choose(side));
  }
  $(id).replaceWith(box);
}

function enable(on) {
  for (const button of $("triad").querySelectorAll("button")) button.disabled = !on;
  $("triad").dataset.ready = on ? "yes" : "";
}

function choose(choice) {
  if (!current || shownAt === null) return;
  if ((choice === "left" || choice === "right") && !$("triad").dataset.ready) return;
  const elapsed = performance.now() - shownAt;
  if (elapsed < 150) return;  // a key or a click that was meant for the question before
  if (practice) return practise(choice);
  queue.push({ lease: current.lease, choice, response_ms: Math.round(elapsed * 10) / 10 });
  memory.set("queue", queue);
  trials.shift();
  current = null;
  document.activeElement?.blur?.();
  next();
  send();
}

function practise(choice) {
  const chosen = choice === "left" ? current.left : current.right;
  const right = chosen.id === current.head.id;
  $("feedback").hidden = false;
  $("feedback").className = right ? "note" : "note warn";
  if (!right) {
    $("feedback").textContent = "Look again: one of the two is the very same as the one above.";
    return;
  }
  const last = practice.length === 1;
  $("feedback").textContent = last ? "Exactly. Now the real questions, which have no right or wrong answer." : "Exactly, it is the same one.";
  $(choice).classList.add("chosen");
  shownAt = null;
  setTimeout(() => {
    practice.shift();
    current = null;
    if (practice.length) next(); else ready();
  }, last ? 1800 : 900);
}

$("undecided").addEventListener("click", () => choose("undecided"));
$("skip").addEventListener("click", () => choose("skip"));
document.addEventListener("keydown", (event) => {
  if ($("trial").hidden || event.repeat || event.ctrlKey || event.altKey || event.metaKey) return;
  if (/^(AUDIO|VIDEO|INPUT)$/.test(event.target.tagName)) return;
  const choice = { ArrowLeft: "left", ArrowRight: "right", ArrowDown: "undecided" }[event.key];
  if (!choice || (choice === "undecided" && $("undecided").hidden)) return;
  event.preventDefault();
  choose(choice);
});

// Sending -------------------------------------------------------------------------------------

async function send() {
  if (busy || !queue.length) return;
  busy = true;
  const batch = queue.slice(0, 50);
  try {
    const reply = await call("answers", { answers: batch });
    settle(new Set([...reply.stored, ...Object.keys(reply.refused).map(Number)]));
    wait = 500;
    busy = false;
    take(reply);
    if (queue.length) send();
  } catch (error) {
    busy = false;
    if ([403, 409, 422].includes(error.status)) {  // it will never be taken; the others may be
      settle(new Set([batch[0].lease]));
      return queue.length ? send() : resume();
    }
    if ([401, 404, 410].includes(error.status)) return resume();
    $("waiting").textContent = `${queue.length} answer${queue.length > 1 ? "s are" : " is"} kept on this device until the study can be reached again.`;
    $("waiting").hidden = false;
    setTimeout(send, wait);
    wait = Math.min(wait * 2, 15000);
  }
}

function settle(done) {
  queue = queue.filter((answer) => !done.has(answer.lease));
  memory.set("queue", queue);
  $("waiting").hidden = true;
}

window.addEventListener("online", () => { wait = 500; send(); });

// End -----------------------------------------------------------------------------------------

function finish() {
  current = null;
  trials = [];
  $("debrief").textContent = about.debrief;
  $("code").textContent = standing.completion.code;
  const back = standing.completion.redirect;
  $("return").hidden = !back;
  if (back) $("return").href = back;
  show("finished");
}

$("withdraw").addEventListener("click", async () => {
  if (!confirm("Delete all your answers for good?")) return;
  try {
    const reply = await call("withdraw", {});
    memory.set("me", null);
    memory.set("queue", []);
    $("withdraw").hidden = true;
    $("code-box").hidden = true;
    $("withdrawn").textContent = `${reply.erased} answers were deleted.`;
  } catch (error) {
    $("withdrawn").textContent = "That did not work just now: " + error.message;
  }
  $("withdrawn").hidden = false;
});

start();
