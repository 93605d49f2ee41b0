"use strict";
// Without this script the page shows everything; with it, it can be searched, turned over and copied.
for (const element of document.querySelectorAll(".needs-script")) element.hidden = false;

const said = document.getElementById("said");
function say(text) { said.textContent = ""; setTimeout(() => { said.textContent = text; }, 50); }

// Colours: the system's, until the button is pressed.
const theme = document.getElementById("theme");
function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
function showTheme() { theme.setAttribute("aria-pressed", String(isDark())); }
theme.addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  showTheme();
});
showTheme();

// Search and pages of rows or examples.
for (const box of document.querySelectorAll(".paged")) {
  const pager = box.querySelector(":scope > .pager");
  if (!pager) continue;
  const items = [...box.querySelectorAll(box.dataset.item)];
  const texts = items.map(item => item.textContent.toLowerCase());
  const search = pager.querySelector("input");
  const place = pager.querySelector(".place");
  const [back, forward] = pager.querySelectorAll("button");
  const size = Number(box.dataset.page);
  let first = 0;
  function show() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = items.filter((_, at) => words.every(word => texts[at].includes(word)));
    if (first >= found.length) first = 0;
    const seen = new Set(found.slice(first, first + size));
    for (const item of items) item.hidden = !seen.has(item);
    const last = Math.min(first + size, found.length);
    const filtered = found.length < items.length ? ` (of ${items.length} in the page)` : "";
    place.textContent = found.length
      ? `${first + 1} to ${last} of ${found.length} ${place.dataset.things}${filtered}`
      : `no ${place.dataset.things} found${filtered}`;
    back.disabled = first === 0;
    forward.disabled = last >= found.length;
  }
  search.addEventListener("input", () => { first = 0; show(); });
  for (const button of [back, forward]) {
    button.addEventListener("click", () => { first += size * Number(button.dataset.turn); show(); });
  }
  const shown = items.map(item => item.hidden);
  addEventListener("beforeprint", () => { items.forEach((item, at) => { shown[at] = item.hidden; }); });
  show();
}

// Copying: a table as lines with tabs, whole, whatever page of it is shown.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
for (const button of document.querySelectorAll("[data-copies]")) {
  button.addEventListener("click", async () => {
    const rows = [...document.getElementById(button.dataset.copies).rows];
    const cell = one => one.dataset.value ?? one.textContent.trim();
    await copy(rows.map(row => [...row.cells].map(cell).join("\t")).join("\n") + "\n");
    button.focus();
    say(`Copied ${rows.length - 1} rows`);
  });
}
for (const button of document.querySelectorAll("[data-copies-text]")) {
  button.addEventListener("click", async () => {
    await copy(document.getElementById(button.dataset.copiesText).textContent + "\n");
    button.focus();
    say("Copied the command");
  });
}

// Saving a drawing: its colours as they are now, since a file knows no variables of the page.
for (const button of document.querySelectorAll("[data-saves]")) {
  button.addEventListener("click", () => {
    const figure = button.closest("figure");
    const colours = getComputedStyle(document.documentElement);
    const drawing = figure.querySelector("svg").cloneNode(true);
    drawing.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    drawing.style.background = colours.getPropertyValue("--paper");
    const text = new XMLSerializer().serializeToString(drawing)
      .replace(/var\((--[\w-]+)\)/g, (_, name) => colours.getPropertyValue(name).trim());
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    link.download = button.dataset.name.replace(/[^\w.-]+/g, "-").slice(0, 60) + ".svg";
    link.click();
    URL.revokeObjectURL(link.href);
    say("Saved the picture");
  });
}
