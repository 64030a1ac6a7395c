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

function stream(rows) {
  const pause = document.querySelector("[data-pause]");
  pause.addEventListener("click", () => {
    const paused = pause.getAttribute("aria-pressed") !== "true";
    pause.setAttribute("aria-pressed", String(paused));
  });
  setInterval(async () => {
    if (document.hidden || pause.getAttribute("aria-pressed") === "true") return;
    const first = rows.querySelector("tr");
    const after = first ? first.dataset.seq : 0;
    const response = await fetch(`${rows.dataset.stream}?after=${after}`);
    if (!response.ok) return;
    const table = new DOMParser().parseFromString(
      `<table><tbody>${await response.text()}</tbody></table>`, "text/html");
    rows.prepend(...table.querySelectorAll("tr"));
    while (rows.rows.length > 500) rows.lastElementChild.remove();
  }, 3000);
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
for (const rows of document.querySelectorAll("[data-stream]")) stream(rows);
