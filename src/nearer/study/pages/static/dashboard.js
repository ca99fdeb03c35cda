// What all pages of the dashboard use.
export const $ = (id) => document.getElementById(id);
export const base = document.querySelector('meta[name="base"]').content;
const token = document.querySelector('meta[name="form-token"]').content;

export async function call(path, body) {
  const options = { headers: {} };
  if (body !== undefined) {
    options.method = "POST";
    options.headers["x-form-token"] = token;
    if (body instanceof FormData) options.body = body;
    else {
      options.headers["content-type"] = "application/json";
      options.body = JSON.stringify(body);
    }
  }
  const reply = await fetch(base + "/api/researcher/" + path, options);
  if (reply.status === 401) location.assign(base + "/login");
  const data = await reply.json().catch(() => ({}));
  if (!reply.ok) throw new Error(data.detail || reply.statusText);
  return data;
}

export function trouble(text) {
  $("trouble").hidden = !text;
  if ($("trouble").textContent !== (text || "")) $("trouble").textContent = text || "";
}

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

export async function attempt(action) {
  try {
    await action();
    trouble(null);
  } catch (error) {
    trouble(error.message || "The server cannot be reached.");
  }
}

// Do something again and again, so that the server is busy with it a tenth of the time at most:
// counting the people of 100,000 answers takes it a second.
export async function repeat(action, ms) {
  const began = performance.now();
  try { await action(); } catch (error) { trouble(error.message || "The server cannot be reached."); }
  setTimeout(() => repeat(action, ms), Math.max(ms, 9 * (performance.now() - began)));
}

export const percent = (share) => (share === null || share === undefined ? "–" : Math.round(100 * share) + " %");
