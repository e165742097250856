"use strict";
// A slice of the fan: regions coloured like a map, the path of the losses, and the price under the pointer.
const POINTS = 121;  // on each axis, at which prices are told

page.register("chart-fan", () => {
  const fan = page.data.fan;
  const { plain, amount, axis } = page;
  const ink = "#1c1b19", accent = "#0065a8";  // on pale fills, whatever the theme
  const root = document.documentElement;
  // The least of linear costs c + gx·x + gy·y, and which one it is.
  const least = (costs, x, y) => {
    let best = Infinity, which = 0;
    costs.forEach(([c, gx, gy], i) => {
      const cost = c + gx * x + gy * y;
      if (cost < best) { best = cost; which = i; }
    });
    return [best, which];
  };
  const [[left, right], [low, high]] = fan.window;
  const grid = (from, to) => Array.from({ length: POINTS }, (_, i) => from + (to - from) * i / (POINTS - 1));
  const columns = grid(left, right), lines = grid(low, high);
  const text = lines.map((y) => columns.map((x) => {
    const [cost, plan] = least(fan.costs, x, y), [kept] = least(fan.kept, x, y);
    const price = kept - cost > 1e-11 * (Math.abs(kept) + Math.abs(cost)) ? kept - cost : 0;
    return `plan ${plan + 1}<br>price ${amount(price)}`;
  }));
  // One trace for each colour; null lifts the pen between polygons.
  const filled = fan.palette.map((fill, c) => {
    const corners = fan.polygons.filter((_, i) => fan.colours[i] === c).flatMap((polygon) => [...polygon, polygon[0], [null, null]]);
    return { type: "scatter", mode: "lines", fill: "toself", fillcolor: fill, x: corners.map((at) => at[0]), y: corners.map((at) => at[1]),
      line: { color: "#6b675f", width: 0.6 }, opacity: root.dataset.theme === "dark" ? 0.8 : 1, hoverinfo: "skip" };
  });
  const xs = fan.path.map((stop) => stop[0]), ys = fan.path.map((stop) => stop[1]);
  const stops = fan.stops.map((name, i) => plain(name) +
    `<br>price ${amount(fan.stopPrices[i])}` +
    (fan.inPlane[i] ? "" : "<br>outside the plane: drawn at its nearest point"));
  const traces = [
    ...filled,
    { type: "heatmap", x: columns, y: lines, z: text.map((row) => row.map(() => 0)), opacity: 0, showscale: false, text, hovertemplate: "%{text}<extra></extra>" },
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
    xaxis: axis({ range: [left, right], title: { text: plain(fan.xTitle) }, zeroline: false, showgrid: false }),
    yaxis: axis({ range: [low, high], title: { text: plain(fan.yTitle) }, zeroline: false, showgrid: false }),
    margin: { l: 10, r: 10, t: 10, b: 10, pad: 2 },
  } };
});
