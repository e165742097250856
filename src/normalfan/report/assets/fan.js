"use strict";
// A slice of the fan: regions coloured like a map, walls between them, the path of the losses.
page.register("chart-fan", () => {
  const fan = page.data.fan;
  const { plain, amount, colour, axis } = page;
  const ink = "#1c1b19";
  const n = fan.palette.length;
  const middle = (values, i) => i < 0 ? values[0] - (values[1] - values[0]) / 2 :
    i + 1 < values.length ? (values[i] + values[i + 1]) / 2 : values[i] + (values[i] - values[i - 1]) / 2;
  const wallsX = [], wallsY = [];
  fan.labels.forEach((row, j) => row.forEach((face, i) => {
    const left = middle(fan.xs, i - 1), right = middle(fan.xs, i), low = middle(fan.ys, j - 1), high = middle(fan.ys, j);
    if (i + 1 < row.length && row[i + 1] !== face) { wallsX.push(right, right, null); wallsY.push(low, high, null); }
    if (j + 1 < fan.labels.length && fan.labels[j + 1][i] !== face) { wallsX.push(left, right, null); wallsY.push(high, high, null); }
  }));
  const text = fan.labels.map((row, j) => row.map((face, i) => `face ${face + 1}<br>price ${amount(fan.prices[j][i])}`));
  const xs = fan.path.map((stop) => stop[0]), ys = fan.path.map((stop) => stop[1]);
  const stops = fan.stops.map((name, i) => plain(name) +
    (fan.stopPrices[i] === null ? "" : `<br>price ${amount(fan.stopPrices[i])}`) +
    (fan.inPlane[i] ? "" : "<br>off the plane: drawn where it comes nearest"));
  const scale = fan.palette.flatMap((fill, c) => [[c / n, fill], [(c + 1) / n, fill]]);
  const traces = [
    { type: "heatmap", x: fan.xs, y: fan.ys, z: fan.labels.map((row) => row.map((face) => fan.colours[face])), zmin: -0.5, zmax: n - 0.5,
      colorscale: scale, showscale: false, opacity: 0.8, text, hovertemplate: "%{text}<extra></extra>" },
    { type: "scatter", mode: "lines", x: wallsX, y: wallsY, line: { color: "#ffffff", width: 1 }, hoverinfo: "skip" },
    { type: "scatter", mode: "lines", x: xs, y: ys, line: { color: ink, width: 1.2 }, opacity: 0.55, hoverinfo: "skip" },
    { type: "scatter", mode: "markers", x: xs, y: ys, text: stops, hovertemplate: "%{text}<extra></extra>",
      marker: { size: fan.stops.map((_, i) => fan.inPlane[i] ? 10 : 7), color: fan.inPlane.map((exact) => exact ? ink : "#ffffff"), line: { color: ink, width: 1.4 } } },
  ];
  const named = fan.stops.map((name, i) => ({ name, i })).filter(({ i }) => fan.inPlane[i]).slice(0, 4);
  const annotations = named.map(({ name, i }) => ({
    x: xs[i], y: ys[i], text: plain(name), showarrow: false, yshift: 16, font: { color: ink, size: 12 }, bgcolor: "rgba(255,255,255,0.75)", borderpad: 2,
  }));
  const edges = (values) => [middle(values, -1), middle(values, values.length - 1)];
  return { traces, more: {
    annotations,
    xaxis: axis({ range: edges(fan.xs), title: { text: plain(fan.xTitle) }, zeroline: false, showgrid: false }),
    yaxis: axis({ range: edges(fan.ys), title: { text: plain(fan.yTitle) }, zeroline: false, showgrid: false }),
    margin: { l: 10, r: 10, t: 10, b: 10, pad: 2 },
  } };
});
