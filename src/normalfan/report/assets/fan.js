"use strict";
// A slice of the fan: regions coloured like a map, walls between them, the path of the losses.
page.register("chart-fan", () => {
  const fan = page.data.fan;
  const { plain, amount, axis } = page;
  const ink = "#1c1b19", accent = "#0065a8";  // on pale fills, whatever the theme
  const root = document.documentElement;
  const n = fan.palette.length;
  const wallsX = fan.walls.flatMap((wall) => [wall[0], wall[2], null]), wallsY = fan.walls.flatMap((wall) => [wall[1], wall[3], null]);
  const text = fan.labels.map((row, j) => row.map((face, i) => `face ${face + 1}<br>price ${amount(fan.prices[j][i])}`));
  const xs = fan.path.map((stop) => stop[0]), ys = fan.path.map((stop) => stop[1]);
  const stops = fan.stops.map((name, i) => plain(name) +
    `<br>price ${amount(fan.stopPrices[i])}` +
    (fan.inPlane[i] ? "" : "<br>outside the plane: drawn at its nearest point"));
  const scale = fan.palette.flatMap((fill, c) => [[c / n, fill], [(c + 1) / n, fill]]);
  const traces = [
    { type: "heatmap", x: fan.xs, y: fan.ys, z: fan.labels.map((row) => row.map((face) => fan.colours[face])), zmin: -0.5, zmax: n - 0.5,
      colorscale: scale, showscale: false, opacity: root.dataset.theme === "dark" ? 0.8 : 1, text, hovertemplate: "%{text}<extra></extra>" },
    { type: "scatter", mode: "lines", x: wallsX, y: wallsY, line: { color: "#6b675f", width: 0.7 }, hoverinfo: "skip" },
    { type: "scatter", mode: "lines", x: xs, y: ys, line: { color: accent, width: 1.6 }, hoverinfo: "skip" },
    { type: "scatter", mode: "markers", x: xs, y: ys, text: stops, hovertemplate: "%{text}<extra></extra>",
      marker: { opacity: 1, size: fan.stops.map((_, i) => fan.inPlane[i] ? 10 : 7), color: fan.inPlane.map((exact) => exact ? accent : "#ffffff"), line: { color: accent, width: 1.6 } } },
  ];
  const named = fan.stops.map((name, i) => ({ name, i })).filter(({ i }) => fan.inPlane[i]).slice(0, 4);
  const annotations = named.map(({ name, i }) => ({
    x: xs[i], y: ys[i], text: plain(name), showarrow: false, yshift: 16, font: { color: ink, size: 12 }, bgcolor: "rgba(255,255,255,0.75)", borderpad: 2,
  }));
  return { traces, more: {
    annotations,
    xaxis: axis({ range: fan.xSpan, title: { text: plain(fan.xTitle) }, zeroline: false, showgrid: false }),
    yaxis: axis({ range: fan.ySpan, title: { text: plain(fan.yTitle) }, zeroline: false, showgrid: false }),
    margin: { l: 10, r: 10, t: 10, b: 10, pad: 2 },
  } };
});
