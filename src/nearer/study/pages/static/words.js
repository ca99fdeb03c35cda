// The texts of the page, in the language of the study.

const words = JSON.parse(document.body.dataset.words);

export const $ = (id) => document.getElementById(id);

export function say(key, values = {}) {
  return words[key].replace(/\{(\w+)\}/g, (whole, name) => (name in values ? values[name] : whole));
}

// Why the server refused a request, in the words of the page; its own messages are English.
export function why(error) {
  if (!error.status) return say("unreachable");
  return say({ 403: "refused_link", 409: "refused_taken", 429: "refused_busy" }[error.status] ?? "refused");
}
