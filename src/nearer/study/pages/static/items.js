import { $, call } from "./dashboard.js";

$("upload").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = new FormData();
  for (const file of $("files").files) form.append("upload", file);
  const note = $("upload-note");
  note.hidden = false;
  try {
    const reply = await call("items", form);
    note.className = "note";
    note.textContent = `${reply.added} items were added.`;
    setTimeout(() => location.reload(), 800);
  } catch (error) {
    note.className = "note bad";
    note.textContent = error.message;
  }
});
