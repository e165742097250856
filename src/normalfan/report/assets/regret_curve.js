"use strict";
// Regret against re-plans: one line for each family of rules, marks for schedules, one legend below.
page.register("chart-regret", () => {
  const { data, colour, narrow, plain, amount, axis } = page;
  const shape = "hv";
  const text = (line) => line.x.map((k, i) => `${plain(line.name)}<br>${k} re-plans, regret ${amount(line.y[i])}`);
  const lines = data.lines.map((line) => ({
    type: "scatter", mode: "lines", name: plain(line.name), x: line.x, y: line.y, text: text(line), hovertemplate: "%{text}<extra></extra>",
    line: line.colour ? { color: line.colour, dash: line.dash, width: line.width, shape } : { color: colour("ink"), width: 2, shape },
  }));
  const marks = data.marks.map((mark, i) => ({
    type: "scatter", mode: "markers", name: plain(mark.name), x: [mark.x], y: [mark.y], text: text({ name: mark.name, x: [mark.x], y: [mark.y] }),
    hovertemplate: "%{text}<extra></extra>", marker: { size: 11, symbol: ["square-open", "diamond-open"][i % 2], color: colour("ink"), line: { width: 2 } },
  }));
  const unit = data.unit ? ` (${plain(data.unit)})` : "";
  return { traces: [...lines, ...marks], more: {
    showlegend: true,
    legend: { orientation: "h", x: 0, xanchor: "left", y: narrow() ? -0.26 : -0.15, yanchor: "top" },
    xaxis: axis({ type: "log", title: { text: plain(data.xTitle) }, dtick: narrow() ? 1 : "D1" }),
    yaxis: axis({ type: "log", title: { text: "regret" + unit }, range: data.heights }),
  } };
});
