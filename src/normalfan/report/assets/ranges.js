"use strict";
// How far each feature may move alone: a tornado, the narrowest range on top.
if (page.data.ranges) page.register("chart-ranges", () => {
  const { data, colour, narrow, plain, axis } = page;
  const { names, texts, optimal, within, edge, relative } = data.ranges;
  const at = names.map((_, i) => i);
  const text = texts.map(([now, best, tolerated], i) => `${plain(names[i])}, now ${now}<br>optimal ${best}<br>within tolerance ${tolerated}`);
  const bars = (name, ends, color) => ({
    type: "bar", orientation: "h", name, y: at, base: ends.map(([low]) => low), x: ends.map(([low, high]) => high - low),
    marker: { color, line: { width: 0 } }, text, textposition: "none", hovertemplate: "%{text}<extra></extra>",
  });
  const short = (name) => narrow() && name.length > 12 ? name.slice(0, 11) + "…" : name;
  return { traces: [bars("within tolerance", within, colour("accent") + "66"), bars("optimal", optimal, colour("accent"))], more: {
    barmode: "overlay", bargap: 0.25, showlegend: true,
    legend: { orientation: "h", x: 0, xanchor: "left", y: 1, yanchor: "bottom", traceorder: "normal" },
    xaxis: axis({ range: [-edge, edge], title: { text: relative ? "change from now, %" : "change from now" }, zerolinecolor: colour("ink") }),
    yaxis: axis({ range: [names.length - 0.5, -0.5], showgrid: false, zeroline: false, tickmode: "array", tickvals: at, ticktext: names.map((name) => plain(short(name))) }),
  } };
});
