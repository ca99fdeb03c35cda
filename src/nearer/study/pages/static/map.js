// The live map: pictures at their fitted places, with zoom, pan, and the nearest neighbours on hover.
import { $, attempt, call, percent, repeat } from "./dashboard.js";

const NS = "http://www.w3.org/2000/svg";
const svg = $("map");
const view = { x: 0, y: 0, k: 1 };
let spots = [];
let drawn = null;
let latest = null;
let [width, height] = [0, 0];

function shape(tag, attributes, parent) {
  const made = document.createElementNS(NS, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.append(made);
  return made;
}

function place(positions) {
  const xs = positions.map((p) => p[0]);
  const ys = positions.map((p) => p[1] ?? 0);
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const scale = Math.min((width - 90) / (x1 - x0 || 1), (height - 110) / (y1 - y0 || 1));
  return positions.map((p) => [width / 2 + (p[0] - (x0 + x1) / 2) * scale, height / 2 - ((p[1] ?? 0) - (y0 + y1) / 2) * scale]);
}

// Objects that differ in one direction only are put on the line that was left free the longest.
function lines(positions, size) {
  const ends = Array(Math.max(1, Math.floor((height - 110) / (size + 6)) + 1)).fill(-Infinity);
  const at = place(positions);
  for (const spot of [...at].sort((a, b) => a[0] - b[0])) {
    const line = ends.indexOf(Math.min(...ends));
    ends[line] = spot[0];
    spot[1] += (line - (ends.length - 1) / 2) * (size + 6);
  }
  return at;
}

function neighbours(positions, i, count = 5) {
  const distance = (p, q) => p.reduce((sum, v, d) => sum + (v - q[d]) ** 2, 0);
  return positions.map((p, j) => [distance(p, positions[i]), j]).filter(([, j]) => j !== i)
    .sort((a, b) => a[0] - b[0]).slice(0, count).map(([, j]) => j);
}

function draw(loaded) {
  const { map, items } = latest = loaded;
  if (!map) {
    $("map-text").textContent = "The map is drawn from the first answers on.";
    return;
  }
  if (drawn === map.seen) return;
  drawn = map.seen;
  const directions = map.dimension > 1
    ? `in about ${map.dimension} directions${map.dimension > 2 ? ", the two strongest are shown" : ""}`
    : "mainly in one direction, from left to right";
  $("map-text").textContent = `From ${map.n_triplets} answers; the items differ ${directions}. Near each other means alike.`;
  [width, height] = [svg.clientWidth, svg.clientHeight];
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const size = Math.max(18, Math.min(64, (0.7 * Math.min(width, height)) / Math.sqrt(items.length)));
  const at = map.dimension > 1 ? place(map.positions) : lines(map.positions, size);
  svg.replaceChildren();
  const layer = shape("g", { id: "layer" }, svg);
  spots = items.map((item, i) => {
    const spot = shape("g", { class: "spot", tabindex: "0", role: "img", "aria-label": item.text || item.alt }, layer);
    if (item.kind === "image") {
      shape("image", { href: item.src, x: -size / 2, y: -size / 2, width: size, height: size }, spot);
      shape("rect", { class: "ring", x: -size / 2 - 3, y: -size / 2 - 3, width: size + 6, height: size + 6, rx: 6 }, spot);
    } else {
      shape("circle", { class: "dot", r: 4, cy: -13 }, spot);
      shape("circle", { class: "ring", r: 9, cy: -13 }, spot);
      shape("text", {}, spot).textContent = (item.text || item.name).slice(0, 24);
    }
    const show = () => peek(items, map.positions, i);
    const hide = () => { $("peek").hidden = true; spots.forEach((s) => s.classList.remove("near")); };
    spot.addEventListener("pointerenter", show);
    spot.addEventListener("focus", show);
    spot.addEventListener("pointerleave", hide);
    spot.addEventListener("blur", hide);
    spot.dataset.x = at[i][0];
    spot.dataset.y = at[i][1];
    return spot;
  });
  move();
  chart(map.history);
}

function peek(items, positions, i) {
  const near = neighbours(positions, i);
  spots.forEach((spot, j) => spot.classList.toggle("near", near.includes(j)));
  const box = $("peek");
  box.replaceChildren();
  if (items[i].kind === "image") {
    const image = document.createElement("img");
    image.src = items[i].src;
    image.alt = "";
    box.append(image);
  }
  const title = document.createElement("strong");
  title.textContent = items[i].text || items[i].name;
  const rest = document.createElement("div");
  rest.className = "muted";
  rest.textContent = "nearest: " + near.map((j) => items[j].text || items[j].name).join(", ");
  box.append(title, rest);
  box.classList.toggle("right", view.x + view.k * spots[i].dataset.x < width / 2);  // never over the spot
  box.hidden = false;
}

// Pictures keep their size while the distances grow, so zooming untangles them.
function move() {
  for (const spot of spots) {
    spot.setAttribute("transform", `translate(${view.x + view.k * spot.dataset.x} ${view.y + view.k * spot.dataset.y})`);
  }
}

function zoom(factor, cx = width / 2, cy = height / 2) {
  const k = Math.min(40, Math.max(0.5, view.k * factor));
  view.x = cx - (cx - view.x) * (k / view.k);
  view.y = cy - (cy - view.y) * (k / view.k);
  view.k = k;
  move();
}

function inside(event) {
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  return [point.x, point.y];
}

svg.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(Math.exp(-event.deltaY / 400), ...inside(event));
}, { passive: false });
let grabbed = null;
svg.addEventListener("pointerdown", (event) => { grabbed = inside(event); });
window.addEventListener("pointerup", () => { grabbed = null; });
svg.addEventListener("pointermove", (event) => {
  if (!grabbed) return;
  const [x, y] = inside(event);
  view.x += x - grabbed[0];
  view.y += y - grabbed[1];
  grabbed = [x, y];
  move();
});
$("zoom-in").addEventListener("click", () => zoom(1.4));
$("zoom-out").addEventListener("click", () => zoom(1 / 1.4));
$("zoom-reset").addEventListener("click", () => { Object.assign(view, { x: 0, y: 0, k: 1 }); move(); });

// Accuracy over time, with one standard error on each side.
function chart(history) {
  const points = history.filter((h) => h.accuracy !== null && h.n_holdout >= 5);
  const last = points.at(-1);
  $("accuracy-text").textContent = last
    ? `${percent(last.accuracy)} of ${last.n_holdout} answers to questions that no fit has seen are predicted; guessing gives 50 %.`
    : "Shown when at least five hold-out questions are answered.";
  const svg = $("chart");
  svg.replaceChildren();
  if (!last) return;
  const most = last.n_triplets;
  const x = (n) => 46 + (730 * n) / most;
  const y = (a) => 210 - (190 * (a - 0.4)) / 0.6;
  for (const a of [0.5, 0.6, 0.7, 0.8, 0.9, 1]) {
    shape("line", { class: "grid", x1: 46, x2: 776, y1: y(a), y2: y(a) }, svg);
    shape("text", { x: 4, y: y(a) + 4 }, svg).textContent = `${Math.round(100 * a)} %`;
  }
  const error = (h) => Math.sqrt((h.accuracy * (1 - h.accuracy)) / h.n_holdout);
  const clamp = (a) => Math.min(1, Math.max(0.4, a));
  const upper = points.map((h) => `${x(h.n_triplets)},${y(clamp(h.accuracy + error(h)))}`);
  const lower = points.map((h) => `${x(h.n_triplets)},${y(clamp(h.accuracy - error(h)))}`).reverse();
  shape("polygon", { class: "band", points: [...upper, ...lower].join(" ") }, svg);
  shape("polyline", { class: "line", points: points.map((h) => `${x(h.n_triplets)},${y(clamp(h.accuracy))}`).join(" ") }, svg);
  for (const h of points) shape("circle", { class: "dot", r: 3.5, cx: x(h.n_triplets), cy: y(clamp(h.accuracy)) }, svg);
  shape("text", { x: 776, y: 234, "text-anchor": "end" }, svg).textContent = `${most} answers`;
}

window.addEventListener("resize", () => {
  drawn = null;
  if (latest) draw(latest);
});

repeat(() => attempt(async () => draw(await call("map"))), 4000);
