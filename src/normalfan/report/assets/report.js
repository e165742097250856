"use strict";
// The charts of a report. The time charts share one span: zooming one zooms all.
(() => {
  const { data, colour, narrow, plain, amount, axis, heading, ticks, register } = page;
  const time = data.time;
  const name = (t) => plain(time.names ? time.names[t] : "round " + t);
  const place = (t) => time.dates ? time.names[t] : t;
  const x = (series) => series.at.map(place);
  const texts = (series, write) => series.at.map((t, i) => name(t) + "<br>" + write(series.y[i], i));
  const span = { range: null };
  const whole = time.dates ? [time.names[0], time.names[time.rounds - 1]] : [-0.5, time.rounds - 0.5];
  const scale = { log: false };

  // Two plots above one another on one time axis.
  function stacked(titles, upper, lower) {
    const linked = { type: time.dates ? "date" : "linear", fixedrange: false, range: span.range ? span.range.slice() : whole.slice(), autorange: false, hoverformat: time.dates ? "%Y-%m-%d" : "d" };
    const bottom = axis(Object.assign({}, linked, { anchor: "y2" }));
    return {
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
      xaxis: axis(Object.assign({}, linked, { anchor: "y", showticklabels: false, matches: "x2" })),
      xaxis2: bottom,
      yaxis: axis(Object.assign({ domain: [0.56, 0.97] }, upper)),
      yaxis2: axis(Object.assign({ domain: [0.0, 0.41] }, lower)),
      annotations: [heading(titles[0], 0.97), heading(titles[1], 0.41)],
    };
  }
  const line = (series, axisNumber, ink, write, more) => Object.assign({
    type: "scatter", mode: "lines", x: x(series), y: series.y, xaxis: "x" + axisNumber, yaxis: "y" + axisNumber,
    line: { color: ink, width: 1.4 }, text: texts(series, write), hovertemplate: "%{text}<extra></extra>",
  }, more);
  const inUnit = (title) => title + (data.unit ? ", " + plain(data.unit) : "");

  const linkedCharts = [];
  linkedCharts.push(register("chart-time", () => {
    const type = scale.log ? "log" : "linear";
    const fill = scale.log ? "none" : "tozeroy";
    const traces = [
      line(time.price, "", colour("accent"), (y) => "price " + amount(y), { fill, fillcolor: colour("accent") + "33" }),
      line(time.variation, "2", colour("second"), (y) => "moved by " + amount(y), { fill, fillcolor: colour("second") + "33" }),
    ];
    const unsure = time.ambiguous;
    if (unsure.at.length) traces.push({
      type: "scatter", mode: "markers", x: x(unsure), y: unsure.y, xaxis: "x", yaxis: "y",
      marker: { symbol: "diamond-open", size: 8, color: colour("third") },
      error_y: { type: "data", symmetric: false, array: unsure.high.map((high, i) => high - unsure.y[i]), arrayminus: unsure.low.map((low, i) => unsure.y[i] - low), color: colour("third") },
      text: texts(unsure, (y, i) => `price ${amount(y)}; near-tie: ` + (unsure.low[i] < unsure.high[i]
        ? `the exact price lies between ${amount(unsure.low[i])} and ${amount(unsure.high[i])}` : "the exact price is this, to the digits shown")), hovertemplate: "%{text}<extra></extra>",
    });
    return { traces, more: stacked([inUnit("Price"), `Variation of the ${data.sense}, ${data.norm}`], { type }, { type }) };
  }));

  linkedCharts.push(register("chart-cumulative", () => {
    const sums = time.cumulative;
    const price = (more) => line(sums.price, "", colour("accent"), (y) => "price so far " + amount(y), more);
    if (sums.regret) {
      const traces = [
        price({ fill: "tozeroy", fillcolor: colour("accent") + "22" }),
        line(sums.selection, "", colour("third"), (y) => "selection error so far " + amount(y), { line: { color: colour("third"), width: 1.4, dash: "dot" } }),
        line(sums.regret, "2", colour("ink"), (y) => "regret so far " + amount(y)),
      ];
      return { traces, more: stacked([inUnit("Price and selection error so far"), inUnit("Regret so far")], {}, {}) };
    }
    const traces = [
      price({ fill: "tozeroy", fillcolor: colour("accent") + "22" }),
      line(sums.kept, "2", colour("accent"), (y) => `with ${data.plan}, so far ` + amount(y), { line: { color: colour("accent"), width: 1.4, dash: "dash" } }),
      line(sums.best, "2", colour("ink"), (y) => "with a new plan, so far " + amount(y)),
    ];
    return { traces, more: stacked([inUnit("Price so far"), inUnit(data.sense === "reward" ? "Reward so far" : "Loss so far")], {}, {}) };
  }));

  linkedCharts.push(register("chart-margins", () => {
    const { margin, gap } = time;
    const dots = (series, axisNumber, word, marker) => ({
      type: "scatter", mode: "markers", x: x(series), y: series.y.map((y) => y > 0 ? y : null), xaxis: "x" + axisNumber, yaxis: "y" + axisNumber,
      text: texts(series, (y, i) => word(y, i)), hovertemplate: "%{text}<extra></extra>", marker,
    });
    const write = (y) => y === null ? "none" : Number(y.toPrecision(3)).toString();
    const traces = [
      dots(gap, "", (y, i) => `gap ${write(y)}${gap.thin[i] ? ", among the smallest" : ""}`, {
        size: gap.thin.map((thin) => thin ? 8 : 4), symbol: gap.thin.map((thin) => thin ? "diamond" : "circle"),
        color: gap.thin.map((thin) => colour(thin ? "third" : "second")), line: { width: 0 } }),
      dots(margin, "2", (y, i) => `margin ${margin.exact[i] ? "" : "at least "}${write(y)}`, {
        size: 5, symbol: margin.exact.map((exact) => exact ? "circle" : "triangle-up-open"), color: colour("second") }),
    ];
    const logged = { type: "log", exponentformat: "power", nticks: 6 };
    return { traces, more: stacked(["Gap (diamond: among the smallest)", "Margin (hollow: lower bound)"], logged, logged) };
  }));

  register("chart-attribution", () => {
    const paid = data.attribution;
    const few = narrow();
    const at = paid.steps.map((_, i) => i);
    const text = paid.z.map((row, s) => row.map((z, h) => `${plain(paid.steps[h])}, ${plain(paid.states[s])}<br>paid ${amount(z)}`));
    const traces = [
      { type: "bar", x: at, y: paid.byStep, xaxis: "x", yaxis: "y", marker: { color: colour("accent") },
        text: paid.byStep.map((y, h) => `${plain(paid.steps[h])}<br>paid ${amount(y)}`), textposition: "none", hovertemplate: "%{text}<extra></extra>" },
      { type: "heatmap", x: at, y: paid.states.map((_, i) => i), z: paid.z.map((row) => row.map((z) => Math.sqrt(z))), xaxis: "x2", yaxis: "y2", text, hovertemplate: "%{text}<extra></extra>",
        colorscale: [[0, colour("wash")], [1, colour("accent")]], showscale: false, xgap: 1, ygap: 1 },
    ];
    const range = [-0.5, paid.steps.length - 0.5];
    return { traces, more: {
      xaxis: axis({ anchor: "y", showticklabels: false, range, showgrid: false, zeroline: false }),
      xaxis2: axis(Object.assign({ anchor: "y2", range, showgrid: false, zeroline: false }, ticks(paid.steps, few ? 6 : 12))),
      yaxis: axis({ domain: [0.8, 0.97], nticks: 3 }),
      yaxis2: axis(Object.assign({ domain: [0, 0.71], showgrid: false, zeroline: false }, ticks(paid.states, few ? 8 : 12))),
      annotations: [heading(inUnit("Paid at each step"), 0.97), heading("Paid at each step in each state", 0.71)],
    } };
  });

  // A y axis shows what is in view. Plotly takes care of that while nothing is zoomed.
  function fit(element, range) {
    const update = {};
    ["", "2"].forEach((number) => {
      if (!range) { update[`yaxis${number}.autorange`] = true; return; }
      const [low, high] = range.map(toNumber);
      const seen = element.data.filter((trace) => trace.yaxis === "y" + number).flatMap((trace) =>
        trace.y.filter((y, i) => y !== null && toNumber(trace.x[i]) >= low && toNumber(trace.x[i]) <= high));
      const logged = element.layout["yaxis" + number].type === "log";
      const shown = logged ? seen.filter((y) => y > 0).map(Math.log10) : seen;
      if (!shown.length) return;
      const filled = element.data.some((trace) => trace.yaxis === "y" + number && trace.fill === "tozeroy");
      const least = Math.min(...shown, ...(filled && !logged ? [0] : [])), most = Math.max(...shown);
      const room = 0.06 * ((most - least) || Math.abs(most) || 1);
      update[`yaxis${number}.range`] = [least - room, most + room];
    });
    return update;
  }

  const drawn = linkedCharts.filter(Boolean);
  // Dates have no time zone: all are read as if they were UTC, as plotly does.
  const toNumber = (edge) => time.dates ? Date.parse(edge.length > 10 ? edge.replace(" ", "T") + "Z" : edge) : Number(edge);
  const fromNumber = (edge) => time.dates ? new Date(edge).toISOString().slice(0, 19).replace("T", " ") : edge;
  let following = false;
  function move(range) {
    span.range = range;
    const to = range || whole;
    following = true;
    const update = { "xaxis.range": to.slice(), "xaxis2.range": to.slice(), "xaxis.autorange": false, "xaxis2.autorange": false };
    Promise.all(drawn.map((element) => Plotly.relayout(element, Object.assign({}, update, fit(element, range))))).finally(() => { following = false; });
    page.followers.forEach((follow) => follow(range && range.map(toNumber)));
  }
  Object.assign(page, { move, toNumber, fromNumber });
  drawn.forEach((element) => element.on("plotly_relayout", (change) => {
    if (following) return;
    const keys = Object.keys(change);
    if (keys.some((key) => /^xaxis2?\.range/.test(key))) move(element.layout.xaxis2.range.slice());
    else if (keys.some((key) => /^xaxis2?\.autorange/.test(key))) move(null);
  }));
  document.querySelectorAll("[data-zoom]").forEach((button) => button.addEventListener("click", () => {
    const [low, high] = (span.range || whole).map(toNumber), [least, most] = whole.map(toNumber);
    const width = high - low, centre = (low + high) / 2;
    const [wide, at] = { in: [width / 2, centre], out: [width * 2, centre], back: [width, centre - width / 2], on: [width, centre + width / 2], all: [Infinity, centre] }[button.dataset.zoom];
    if (wide >= most - least) return move(null);
    const start = Math.min(Math.max(at - wide / 2, least), most - wide);
    return move([start, start + wide].map(fromNumber));
  }));
  document.querySelector("[data-scale]").addEventListener("click", (event) => {
    scale.log = !scale.log;
    event.currentTarget.setAttribute("aria-pressed", String(scale.log));
    page.redraw();
    move(span.range);
  });
})();
