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

export const percent = (share) => (share === null || share === undefined ? "–" : Math.round(100 * share) + " %");
