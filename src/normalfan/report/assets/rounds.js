"use strict";
// The rounds that are shown: chosen by date or number, or by zooming a chart; their sums; every round as a file.
(() => {
  const { data, amount } = page;
  const { rounds, time } = data, form = document.getElementById("choose");
  if (!rounds) return;
  const count = time.rounds;
  const { price, value } = rounds.columns;
  const every = Array.from({ length: count }, (_, t) => t);
  const places = every.map((t) => time.dates ? page.toNumber(rounds.names[t]) : t);
  const [from, to] = ["from", "to"].map((id) => document.getElementById(id));
  const sum = (column, of) => of.reduce((total, t) => total + column[t], 0);
  const plural = (n, noun) => `${n.toLocaleString("en-US")} ${noun}${n === 1 ? "" : "s"}`;

  // What an input says of a round, so that both can be compared: numbers, or dates as long as the input's.
  const letters = from.type === "date" ? 10 : 16;
  const written = (t) => time.dates ? rounds.names[t].replace(" ", "T").slice(0, letters).padEnd(letters, "T00:00") : t;
  const asked = (input) => input.value === "" ? null : time.dates ? input.value : Number(input.value);

  const output = document.getElementById("shown");
  function tell(shown) {
    const total = sum(price, every), part = sum(price, shown);
    const share = shown.length < count && total > 0 ? ` (${Number((100 * part / total).toPrecision(2))} % of all)` : "";
    const which = shown.length < count ? `${shown.length.toLocaleString("en-US")} of ${plural(count, "round")}` : `All ${plural(count, "round")}`;
    output.innerHTML = `${which}: the price adds up to <strong>${amount(part)}</strong>${share}, the expected ${data.sense} of the best plans to ${amount(sum(value, shown)).replace("−", "−\u2060")}.`;
  }

  const periods = document.getElementById("periods");
  const DAY = 86400000;
  const period = { by: "month", shown: every };
  const begins = {
    month: (t) => rounds.names[t].slice(0, 7),
    week: (t) => { const day = Math.floor(places[t] / DAY); return new Date((day - (((day + 3) % 7) + 7) % 7) * DAY).toISOString().slice(0, 10); },
  };
  function tabulate() {
    if (!periods) return;
    const groups = new Map();
    period.shown.forEach((t) => {
      const key = begins[period.by](t);
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(t);
    });
    periods.tHead.rows[0].cells[0].textContent = period.by === "month" ? "Month" : "Week, from Monday";
    const most = Math.max(...Array.from(groups.values(), (of) => sum(price, of)));
    periods.tBodies[0].replaceChildren(...Array.from(groups, ([key, of]) => {
      const row = document.createElement("tr"), paid = sum(price, of);
      row.innerHTML = `<th scope="row">${key}</th><td class="number">${of.length}</td><td class="number bar">${amount(paid)}</td><td class="number">${amount(sum(value, of))}</td>`;
      row.cells[2].style.setProperty("--part", `${most > 0 ? 100 * paid / most : 0}%`);
      return row;
    }));
  }
  document.querySelectorAll("[data-period]").forEach((button, _, buttons) => button.addEventListener("click", () => {
    period.by = button.dataset.period;
    buttons.forEach((one) => one.setAttribute("aria-pressed", String(one === button)));
    tabulate();
  }));

  let typing = false;  // then the inputs stay as they are
  // Whoever moves the span, an input, a zoom or a drag: everything else follows.
  function follow(span) {
    const shown = span ? every.filter((t) => places[t] >= span[0] && places[t] <= span[1]) : every;
    [[from, shown[0]], [to, shown[shown.length - 1]]].forEach(([input, t]) => {
      if (!typing) input.value = span && shown.length ? written(t) : "";
      input.removeAttribute("aria-invalid");
    });
    tell(shown);
    period.shown = shown;
    tabulate();
    if (page.showRounds) page.showRounds((t) => !span || (places[t] >= span[0] && places[t] <= span[1]));
  }
  page.followers.push(follow);
  follow(null);

  // The span of some rounds, with a little room on both sides: less than to the next round.
  function around(first, last) {
    const gaps = [first, last + 1].filter((t) => t > 0 && t < count).map((t) => places[t] - places[t - 1]);
    const room = time.dates ? Math.min(...gaps) / 2 : 0.5;
    return [places[first] - room, places[last] + room].map(page.fromNumber);
  }
  form.addEventListener("input", () => {
    const [low, high] = [from, to].map(asked);
    const chosen = every.filter((t) => (low === null || written(t) >= low) && (high === null || written(t) <= high));
    const none = !chosen.length;
    [from, to].forEach((input) => input.setAttribute("aria-invalid", String(none)));
    if (none) { output.textContent = "No round lies there: the charts and the table are as before."; return; }
    typing = true;
    page.move(chosen.length === count ? null : around(chosen[0], chosen[chosen.length - 1]));
    typing = false;
  });
  form.addEventListener("submit", (event) => event.preventDefault());

  // A spreadsheet takes what follows an apostrophe for text, and runs what begins with = + - @.
  const cell = (text) => {
    const harmless = String(text).replace(/^[=+\-@\t\r]/, "'$&");
    return /[",\n\r]/.test(harmless) ? `"${harmless.replace(/"/g, '""')}"` : harmless;
  };
  document.getElementById("download").addEventListener("click", () => {
    const columns = Object.entries(rounds.columns);
    const lines = every.map((t) => [rounds.names ? cell(rounds.names[t]) : t, ...columns.map(([, column]) => column[t])].join(","));
    const text = [["round", ...columns.map(([name]) => name)].join(","), ...lines, ""].join("\n");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
    link.download = "rounds.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href));
  });
})();
