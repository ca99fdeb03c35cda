// The browser's storage: the person, and answers that the server has not confirmed. Studies below
// different paths of one host have storage of their own.
//
// Every answer has a key of its own, so tabs never overwrite each other's. A tab sends its own
// answers, and those left by a tab that was closed; an answer that is sent twice is stored once.

const here = new URL(".", location).pathname;
const prefix = here === "/" ? "nearer." : `nearer.${here}.`;

let place = "localStorage";

export const memory = {
  // In a lab the next person uses the same computer: storage ends with the tab.
  onlyInThisTab() { place = "sessionStorage"; },
  get(key) { try { return JSON.parse(window[place].getItem(prefix + key)); } catch { return null; } },
  set(key, value) {
    try {
      if (value === null) window[place].removeItem(prefix + key);
      else window[place].setItem(prefix + key, JSON.stringify(value));
    } catch { /* private mode: then this page's own memory has to do */ }
  },
  keys(start) {
    try { return Object.keys(window[place]).filter((key) => key.startsWith(prefix + start)).map((key) => key.slice(prefix.length)); }
    catch { return []; }
  },
};

export class Queue {
  constructor(token) {
    this.start = `answer.${token.slice(-16)}.`;  // answers of other people in this browser have other keys
    this.waiting = memory.keys(this.start).map((key) => memory.get(key)).filter(Boolean);
    this.waiting.sort((one, other) => one.lease - other.lease);
  }

  get length() { return this.waiting.length; }

  has(lease) { return this.waiting.some((answer) => answer.lease === lease); }

  add(answer) {
    this.waiting.push(answer);
    memory.set(this.start + answer.lease, answer);
  }

  settle(leases) {
    this.waiting = this.waiting.filter((answer) => !leases.has(answer.lease));
    for (const lease of leases) memory.set(this.start + lease, null);
  }

  // Answers in other tabs of this person are listed here, too, until those tabs have sent them.
  watch(answered) {
    window.addEventListener("storage", (event) => {
      const key = prefix + this.start;
      if (!event.key?.startsWith(key)) return;
      const lease = Number(event.key.slice(key.length));
      if (!event.newValue) this.waiting = this.waiting.filter((answer) => answer.lease !== lease);
      else if (!this.has(lease)) {
        this.waiting.push(JSON.parse(event.newValue));
        answered(lease);
      }
    });
  }

  static forget() { for (const key of memory.keys("answer.")) memory.set(key, null); }
}
