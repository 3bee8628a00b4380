// Keys, and pages that show how far something is.  Everything works without this file, too.
"use strict";

const typing = (target) => target.matches("input, select, textarea");

// Columns of a grid, as the browser laid them out.
function columns(tiles) {
  const top = tiles[0].offsetTop;
  const next = tiles.findIndex((tile) => tile.offsetTop > top);
  return next < 0 ? tiles.length : next;
}

function walk(key) {
  const tiles = [...document.querySelectorAll("[data-grid] a.tile")];
  if (!tiles.length) return false;
  const now = tiles.indexOf(document.activeElement);
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns(tiles), ArrowDown: columns(tiles) };
  const target = now < 0 ? 0 : now + steps[key];
  if (target < 0 || target >= tiles.length) return now >= 0 && key.match(/Left|Right/);
  tiles[target].focus();
  tiles[target].scrollIntoView({ block: "nearest" });
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && typing(event.target)) return event.target.blur();
  if (typing(event.target) || document.querySelector("dialog[open]")) return;
  if (event.key === "?") {
    event.preventDefault();
    return document.getElementById("keys").showModal();
  }
  if (event.key.startsWith("Arrow") && walk(event.key)) return event.preventDefault();
  const target = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!target) return;
  event.preventDefault();
  if (target.matches("summary")) {
    target.parentElement.open = true;
    target.parentElement.querySelector("input:not([type=hidden])").focus();
  } else if (typing(target)) {
    target.focus();
    target.select();
  } else {
    target.click();
  }
});

// The part of a page that changes is asked for again, as long as it says that it does.
async function refresh() {
  const live = document.querySelector("#live[data-live]");
  if (!live) return;
  if (!document.hidden) {
    try {
      const answer = await fetch(location.href);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("live");
      const kept = live.contains(document.activeElement) && document.activeElement !== document.body;
      if (fresh && !(kept && fresh.hasAttribute("data-live"))) live.replaceWith(fresh);
    } catch (error) {
      return;  // the page was closed
    }
  }
  setTimeout(refresh, 1000);
}
setTimeout(refresh, 700);

// The crop of an epoch stands out while its picture is pointed at.
function mark(epoch) {
  const crops = document.querySelector(".crops");
  if (!crops) return;
  crops.classList.toggle("some", epoch !== null);
  for (const crop of crops.children) crop.classList.toggle("on", crop.dataset.epoch === epoch);
}
for (const tile of document.querySelectorAll(".epochs .tile")) {
  for (const name of ["mouseenter", "focus"]) tile.addEventListener(name, () => mark(tile.dataset.epoch));
  for (const name of ["mouseleave", "blur"]) tile.addEventListener(name, () => mark(null));
}
