"use strict";

// The page works without this file; it saves a click, a wait and a reload here and there.

const fragment = (text) => new DOMParser().parseFromString(text, "text/html").body;

async function load(place) {
  try {
    const response = await fetch(place.dataset.load);
    place.replaceChildren(...fragment(await response.text()).childNodes);
  } catch {
    place.textContent = "The server of this page does not answer any more.";
  }
  place.setAttribute("aria-busy", "false");
  performance.mark("berth-loaded");
}

// A cell of a map: its place gives its number, the server knows the node.
function cellOf(map, event) {
  const box = map.getBoundingClientRect();
  const pitch = (11 * box.width) / map.viewBox.baseVal.width;
  const column = Math.floor((event.clientX - box.left) / pitch);
  const cell = Math.floor((event.clientY - box.top) / pitch) * Number(map.dataset.columns) + column;
  return cell >= 0 && cell < Number(map.dataset.cells) ? cell : null;
}

function listen(map, tip) {
  let asked = null;
  map.addEventListener("click", (event) => {
    const cell = cellOf(map, event);
    if (cell !== null) location.assign(`${map.dataset.cell}&cell=${cell}`);
  });
  map.addEventListener("pointermove", async (event) => {
    const cell = cellOf(map, event);
    if (cell === null || cell === asked) return;
    asked = cell;
    const response = await fetch(`${map.dataset.cell}&cell=${cell}&as=text`);
    if (asked === cell && response.ok) tip.textContent = await response.text();
  });
}

// New rows come with where to go on from; after a change of the leader all rows are replaced.
function stream(first) {
  let rows = first;
  const pause = document.querySelector("[data-pause]");
  const state = document.querySelector("[data-state]");
  const said = state.textContent;
  pause.addEventListener("click", () => {
    const paused = pause.getAttribute("aria-pressed") !== "true";
    pause.setAttribute("aria-pressed", String(paused));
  });
  async function follow() {
    if (document.hidden || pause.getAttribute("aria-pressed") === "true") return;
    const cursor = encodeURIComponent(rows.dataset.cursor);
    let text = "";
    try {
      const response = await fetch(`${rows.dataset.stream}/decisions/rows?cursor=${cursor}`);
      text = response.ok ? await response.text() : "";
    } catch {
      state.textContent = "The server of this page does not answer any more.";
      return;
    }
    const found = new DOMParser().parseFromString(`<table>${text}</table>`, "text/html")
      .querySelector("tbody");
    if (!found) return;
    if (("measured" in found.dataset) !== ("measured" in rows.dataset)) {
      location.reload(); // the leader can be asked again, or not any more: other columns
      return;
    }
    state.textContent = said;
    if ("restart" in found.dataset) {
      rows.replaceWith(found);
      rows = found;
      return;
    }
    rows.prepend(...found.rows);
    rows.dataset.cursor = found.dataset.cursor;
    while (rows.rows.length > 500) rows.lastElementChild.remove();
  }
  const next = () => setTimeout(() => follow().finally(next), 2000);
  next();
}

document.addEventListener("keydown", (event) => {
  const busy = event.target.closest("input, select, textarea, [contenteditable]");
  if (event.key !== "/" || busy || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  document.getElementById("find").focus();
});

for (const place of document.querySelectorAll("[data-load]")) load(place);
const tip = document.querySelector("[data-tip]");
for (const map of document.querySelectorAll("[data-cell]")) listen(map, tip);
for (const rows of document.querySelectorAll("[data-stream]:not([data-stream=''])")) stream(rows);
