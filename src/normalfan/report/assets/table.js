"use strict";
// The table of rounds: one <tbody> a round, so that a round and its plans move and hide together.
(() => {
  const table = document.getElementById("rounds-table");
  if (!table) return;
  const groups = Array.from(table.tBodies).filter((body) => body.parentElement === table);
  const headings = Array.from(table.tHead.rows[0].cells);

  const compare = (column, text) => (one, other) => {
    const [a, b] = [one, other].map((body) => body.rows[0].cells[column]);
    return text && !a.dataset.key ? a.textContent.localeCompare(b.textContent) : Number(a.dataset.key) - Number(b.dataset.key);
  };
  headings.forEach((heading, column) => {
    const button = heading.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const text = heading.classList.contains("text");
      const before = heading.getAttribute("aria-sort");
      const order = before ? (before === "descending" ? "ascending" : "descending") : (text ? "ascending" : "descending");
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", order);
      groups.sort(compare(column, text));
      if (order === "descending") groups.reverse();
      groups.forEach((body) => table.appendChild(body));
    });
  });

  groups.forEach((body) => {
    const button = body.rows[0].querySelector("button");
    button.addEventListener("click", () => {
      const plan = body.rows[1];
      plan.hidden = !plan.hidden;
      button.setAttribute("aria-expanded", String(!plan.hidden));
      button.textContent = plan.hidden ? "Show" : "Hide";
    });
  });

  const filter = document.getElementById("filter");
  const matches = document.getElementById("matches");
  const texts = new Map(groups.map((body) => [body, body.textContent.toLowerCase()]));
  let inSpan = () => true;
  function show() {
    const wanted = filter.value.trim().toLowerCase().split(/\s+/);
    let shown = 0;
    groups.forEach((body) => {
      const round = Number(body.rows[0].cells[0].dataset.key);
      body.hidden = !(inSpan(round) && wanted.every((word) => texts.get(body).includes(word)));
      shown += body.hidden ? 0 : 1;
    });
    matches.textContent = shown < groups.length || filter.value.trim() ? `${shown} of ${groups.length} rounds` : "";
  }
  filter.addEventListener("input", show);
  page.showRounds = (test) => { inSpan = test; show(); };
})();
