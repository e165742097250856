"use strict";
// Shared by all pages: the data, the theme, and the list of charts, which are drawn again when the theme changes.
const page = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const charts = [];
  const paper = {};
  const colour = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();
  const narrow = () => root.clientWidth < 640;
  // Plotly interprets some markup in texts; the user's labels must stay plain text.
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  function amount(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    const digits = size >= 1000 ? Math.round(size).toLocaleString("en-US") : String(Number(size.toPrecision(4)));
    const sign = value < 0 ? "−" : "";
    if (data.unit && "$€£¥".includes(data.unit)) return sign + data.unit + digits;
    return plain(sign + digits + (data.unit ? " " + data.unit : ""));
  }

  function axis(more) {
    return Object.assign({
      gridcolor: colour("line"), zerolinecolor: colour("line"), linecolor: colour("line"),
      tickcolor: colour("line"), automargin: true, fixedrange: true, title: { text: "" },
    }, more);
  }

  function layout(element, more) {
    return Object.assign({
      height: Number(element.dataset.height) * (narrow() ? 0.85 : 1),
      margin: { l: 10, r: 10, t: 28, b: 10, pad: 2 },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: colour("sans"), size: 12, color: colour("quiet") },
      hoverlabel: { bgcolor: colour("wash"), bordercolor: colour("line"), font: { color: colour("ink"), family: colour("sans") }, align: "left" },
      hovermode: "closest", showlegend: false, dragmode: false,
    }, paper, more);
  }

  // A heading within a figure, at the top left of a plot that ends at `top` of its height.
  const heading = (text, top) => ({
    text, x: 0, xref: "paper", xanchor: "left", y: top, yref: "paper", yanchor: "bottom", showarrow: false,
    font: { size: 12.5, color: colour("ink") },
  });

  // At most `most` of the labels, evenly, so that they do not run into each other.
  function ticks(labels, most) {
    const stride = Math.max(1, Math.ceil(labels.length / most));
    const at = labels.map((_, i) => i).filter((i) => i % stride === 0);
    return { tickmode: "array", tickvals: at, ticktext: at.map((i) => plain(labels[i])) };
  }

  function register(id, build) {
    const element = document.getElementById(id);
    if (!element) return null;
    const draw = () => {
      const { traces, more } = build(element);
      return Plotly.react(element, traces, layout(element, more), { displayModeBar: false, responsive: true, doubleClick: "reset" });
    };
    charts.push(draw);
    draw();
    return element;
  }

  const button = document.getElementById("theme");
  function show(theme) {
    root.dataset.theme = theme;
    button.setAttribute("aria-pressed", String(theme === "dark"));
    charts.forEach((draw) => draw());
  }
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => show(dark.matches ? "dark" : "light"));
  button.addEventListener("click", () => show(root.dataset.theme === "dark" ? "light" : "dark"));
  // Paper is light and narrow; plotly does not adapt to it by itself.
  let before = null;
  addEventListener("beforeprint", () => { before = root.dataset.theme; paper.width = 680; show("light"); });
  addEventListener("afterprint", () => {
    delete paper.width;
    show(before);
    document.querySelectorAll(".chart").forEach((element) => Plotly.Plots.resize(element));
  });
  show(dark.matches ? "dark" : "light");

  // `followers` are told the span of rounds that is shown, [low, high] or null for all.
  return { data, colour, narrow, plain, amount, axis, heading, ticks, register, redraw: () => charts.forEach((draw) => draw()), followers: [] };
})();
