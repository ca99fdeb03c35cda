// Pictures, sound and film: fetched once, ahead of the question that shows them.

const loaded = new Map();  // src: promise of an address to show it from

// Addresses of the server are below the path of the study, which only the page may know.
const below = (src) => (src.startsWith("/media/") ? src.slice(1) : src);

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function fetchWhole(src) {
  for (let wait = 1000; ; wait = Math.min(2 * wait, 15000)) {
    try {
      const reply = await fetch(below(src));
      if (reply.ok) return URL.createObjectURL(await reply.blob());
    } catch { /* no network just now */ }
    await pause(wait);
  }
}

export function preload(things) {
  for (const { src } of things) {
    if (src && !loaded.has(src)) loaded.set(src, fetchWhole(src));
  }
}

// Free the memory of everything but these things.
export function keepOnly(things) {
  const wanted = new Set(things.map((thing) => thing.src));
  for (const [src, address] of loaded) {
    if (wanted.has(src)) continue;
    loaded.delete(src);
    address.then(URL.revokeObjectURL);
  }
}

// Put a thing's content into an element that shows it; done when it can be seen or played.
export async function fillIn(element, src) {
  preload([{ src }]);
  element.dataset.src = src;
  element.src = await loaded.get(src);
  if (element.decode) return element.decode().catch(() => undefined);
  if (element.readyState >= 2) return undefined;
  return new Promise((resolve) => {
    element.addEventListener("loadeddata", resolve, { once: true });
    element.addEventListener("error", resolve, { once: true });
  });
}

// A sound or film that records whether all of it was played: skipped parts count as not played, and
// the speed cannot be changed.
const SLACK = 0.3;  // seconds; browsers round the ends of what was played

export function player(kind, onPlayed) {
  const made = document.createElement(kind);
  made.controls = true;
  made.preload = "auto";
  made.playsInline = true;
  made.disableRemotePlayback = true;
  made.setAttribute("controlslist", "nodownload noplaybackrate noremoteplayback");
  made.disablePictureInPicture = true;
  const check = () => {
    if (made.dataset.played || !made.duration) return;
    let seconds = 0;
    for (let k = 0; k < made.played.length; k++) seconds += made.played.end(k) - made.played.start(k);
    const enough = made.duration - Math.min(SLACK, made.duration / 4);
    if (seconds < enough) return;
    made.dataset.played = "yes";
    onPlayed();
  };
  for (const event of ["ended", "timeupdate", "pause"]) made.addEventListener(event, check);
  made.addEventListener("ratechange", () => { if (made.playbackRate !== 1) made.playbackRate = 1; });
  return made;
}
