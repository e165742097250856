"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const { along, nexts, horizon, corners, rays, words, inside, colours, extent } = data;
const TIE = 1e-9, SNAP = 0.07, STEP = 0.05, FAR = 5;
const state = { before: data.before.slice(), after: data.after.slice(), point: 0 };
const find = (id) => document.getElementById(id);

/* --- the problem: losses, backups, faces ------------------------------------------------------------- */

const lossAt = ([x, y]) => along[0].map((layer, h) => layer.map((row, s) => row.map((d, a) => x * d + y * along[1][h][s][a])));

/** Optimal values and advantages, backward. */
function backup(loss) {
  let ahead = nexts.map(() => 0);
  const advantages = [];
  for (let h = horizon - 1; h >= 0; h--) {
    const q = loss[h].map((row, s) => row.map((cost, a) => cost + ahead[nexts[s][a]]));
    const values = q.map((row) => Math.min(...row));
    advantages[h] = q.map((row, s) => row.map((v) => (v - values[s] <= TIE ? 0 : v - values[s])));
    ahead = values;
  }
  return { value: ahead[0], advantages };
}

/** All plans: what each does, layer by layer, from the start. */
const plans = (function list(h, s) {
  if (h === horizon) return [[]];
  return nexts[s].flatMap((next, a) => list(h + 1, next).map((rest) => [[h, s, a], ...rest]));
})(0, 0);
const word = (plan) => plan.map(([, , a]) => a).join("");
const worth = (plan, table) => plan.reduce((sum, [h, s, a]) => sum + table[h][s][a], 0);

function results() {
  const [old, now] = [state.before, state.after].map((place) => backup(lossAt(place)));
  const held = plans.filter((plan) => worth(plan, old.advantages) === 0);
  const best = plans.filter((plan) => worth(plan, now.advantages) === 0);
  const costs = held.map((plan) => worth(plan, now.advantages));
  const price = Math.min(...costs);
  const cheapest = held[costs.indexOf(price)];
  const others = plans.map((plan) => worth(plan, now.advantages)).filter((lost) => lost > 0);
  const share = state.point / 100;
  const played = [[held[0], 1 - share], [held[held.length - 1], share]];
  const regret = played.reduce((sum, [plan, weight]) => sum + weight * worth(plan, now.advantages), 0);
  return {
    held: held.map(word), best: best.map(word), price, margin: others.length ? Math.min(...others) : Infinity,
    byLayer: cheapest.map(([h, s, a]) => now.advantages[h][s][a]),
    selection: regret - price, regret, meets: held.some((plan) => best.includes(plan)),
    play: [0, 1].map((k) => played.reduce((sum, [plan, weight]) => sum + weight * worth(plan, along[k]), 0)),
  };
}
window.fan = { state, results, move, refresh };  // what tests look at

/* --- drawing ------------------------------------------------------------------------------------------ */

const svg = (name, attributes, parent) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (parent) parent.append(element);
  return element;
};
const unit = ([x, y]) => { const size = Math.hypot(x, y); return [x / size, y / size]; };
const RIM = 100, SCALE = RIM / extent;
const onFan = ([x, y]) => [x * SCALE, -y * SCALE];
const xs = [...corners, ...inside].map((p) => p[0]), ys = [...corners, ...inside].map((p) => p[1]);
const middle = [(Math.min(...xs) + Math.max(...xs)) / 2, (Math.min(...ys) + Math.max(...ys)) / 2];
const zoom = 150 / Math.max(Math.max(...xs) - Math.min(...xs), Math.max(...ys) - Math.min(...ys));
const onPolytope = ([x, y]) => [(x - middle[0]) * zoom, -(y - middle[1]) * zoom];
const wheel = find("fan"), shape = find("polytope");
const handles = {};

function drawStill() {
  corners.forEach((_, i) => {
    const first = unit(rays[i]), last = unit(rays[(i + 1) % rays.length]);
    const [a, b] = [first, last].map(([x, y]) => [x * RIM, -y * RIM]);
    const turn = (Math.atan2(last[1], last[0]) - Math.atan2(first[1], first[0]) + 2 * Math.PI) % (2 * Math.PI);
    svg("path", { d: `M0 0L${a}A${RIM} ${RIM} 0 ${turn > Math.PI ? 1 : 0} 0 ${b}Z`, fill: colours[i], "fill-opacity": 0.45, stroke: "#222", "stroke-width": 1 }, wheel);
    const angle = Math.atan2(first[1], first[0]) + turn / 2;
    const text = svg("text", { x: 84 * Math.cos(angle), y: -84 * Math.sin(angle) + 3, "text-anchor": "middle" }, wheel);
    text.textContent = words[i];
  });
  svg("polygon", { points: corners.map(onPolytope).join(" "), fill: "#f2f2f2", stroke: "#222" }, shape);
  inside.forEach((p) => { const [x, y] = onPolytope(p); svg("circle", { cx: x, cy: y, r: 2.5, fill: "#888" }, shape); });
  corners.forEach((corner, i) => {
    const [x, y] = onPolytope(corner), size = Math.hypot(x, y) || 1;
    svg("circle", { cx: x, cy: y, r: 5, fill: colours[i], stroke: "#222" }, shape);
    const text = svg("text", { x: x + (17 * x) / size, y: y + (15 * y) / size + 3, "text-anchor": "middle" }, shape);
    text.textContent = words[i];
  });
}

function drawMoving() {
  for (const [name, label, colour] of [["before", "yesterday's loss", "#0072B2"], ["after", "today's loss", "#D55E00"]]) {
    const group = svg("g", { class: "handle", tabindex: 0, role: "slider", "aria-label": label, id: `handle-${name}`, "aria-valuemin": 0, "aria-valuemax": 360 }, wheel);
    svg("circle", { r: 16, fill: "transparent" }, group);
    svg("circle", { r: 8, fill: colour, stroke: "#fff", "stroke-width": 2, class: "ring" }, group);
    handles[name] = group;
    drag(group, name);
    group.addEventListener("keydown", (event) => press(event, name));
  }
  handles.oldFace = svg("polyline", { fill: "none", stroke: "#0072B2", "stroke-width": 19, "stroke-opacity": 0.35, "stroke-linecap": "round" }, shape);
  handles.newFace = svg("polyline", { fill: "none", stroke: "#D55E00", "stroke-width": 5, "stroke-linecap": "round" }, shape);
  handles.play = svg("circle", { r: 4.5, fill: "#009E73", stroke: "#fff", "stroke-width": 1.5 }, shape);
}

const pointsOf = (some) => {
  const places = some.map((name) => words.indexOf(name)).filter((i) => i >= 0);
  const whole = places.length > 2 ? [...places, places[0]] : places;
  return whole.map((i) => onPolytope(corners[i])).join(" ");
};
const doubled = (points) => (points && !points.includes(" ") ? `${points} ${points}` : points);  // a dot needs two ends
const shown = (value) => (Number.isFinite(value) ? String(Math.round(value * 1000) / 1000) : "∞");
const kind = (some) => (some.length === 1 ? "one plan" : some.length === plans.length ? "all plans tie" : `${some.length} plans tie`);

function refresh() {
  const found = results();
  for (const name of ["before", "after"]) {
    const [x, y] = onFan(state[name]);
    handles[name].setAttribute("transform", `translate(${x} ${y})`);
    const angle = (Math.atan2(state[name][1], state[name][0]) * 180) / Math.PI;
    handles[name].setAttribute("aria-valuenow", Math.round((angle + 360) % 360));
    handles[name].setAttribute("aria-valuetext", `${(name === "before" ? found.held : found.best).join(" or ")}`);
  }
  handles.oldFace.setAttribute("points", doubled(pointsOf(found.held)));
  handles.newFace.setAttribute("points", doubled(pointsOf(found.best)));
  const [px, py] = onPolytope(found.play);
  handles.play.setAttribute("cx", px); handles.play.setAttribute("cy", py);
  const few = (some) => (some.length > 3 ? `${some.slice(0, 3).join(", ")} …` : some.join(", "));
  find("before").textContent = few(found.held);
  find("after").textContent = few(found.best);
  find("before-kind").textContent = kind(found.held);
  find("after-kind").textContent = kind(found.best);
  find("price").textContent = shown(found.price);
  find("meets").textContent = found.meets ? "the two faces meet: free" : "the two faces are apart";
  find("margin").textContent = shown(found.margin);
  find("selection").textContent = shown(found.selection);
  const most = Math.max(...found.byLayer, 1e-12);
  find("layers").innerHTML = found.byLayer.map((paid, h) =>
    `<span>step ${h + 1}</span><div class="bar"><i style="width:${(100 * paid) / Math.max(most, 1)}%"></i></div><span>${shown(paid)}</span>`).join("");
  const tied = found.held.length > 1;
  find("point").disabled = !tied;
  find("hint").textContent = tied ? `from ${found.held[0]} to ${found.held[found.held.length - 1]}; regret ${shown(found.regret)} = price + error` : "yesterday's face is one plan: nothing to choose";
  find("said").textContent = `Yesterday ${few(found.held)} was best, today ${few(found.best)}. Staying costs ${shown(found.price)}`
    + (found.price > 0 ? ` (${found.byLayer.map(shown).join(" + ")} by step).` : ".");
}

/* --- moving ------------------------------------------------------------------------------------------- */

function move(name, place) {
  let [x, y] = place;
  const size = Math.hypot(x, y);
  if (size > 0.97 * extent) [x, y] = [(x / size) * 0.97 * extent, (y / size) * 0.97 * extent];
  if (size < SNAP) [x, y] = [0, 0];
  else for (const ray of rays) {  // onto a wall, if it is near
    const [a, b] = unit(ray), along_ = x * a + y * b, off = Math.abs(x * b - y * a);
    if (along_ > 0 && off < SNAP) { [x, y] = [a * along_, b * along_]; break; }
  }
  state[name] = [x, y];
  if (name === "before") { state.point = 0; find("point").value = 0; }
  refresh();
}

function drag(group, name) {
  group.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    group.focus();
    group.setPointerCapture(event.pointerId);
  });
  group.addEventListener("pointermove", (event) => {
    if (!group.hasPointerCapture(event.pointerId)) return;
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(wheel.getScreenCTM().inverse());
    move(name, [place.x / SCALE, -place.y / SCALE]);
  });
}

const loose = { before: state.before.slice(), after: state.after.slice() };  // where keys are, before snapping
function press(event, name) {
  const step = STEP * (event.shiftKey ? FAR : 1);
  const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
  if (event.key === "Home") loose[name] = [0, 0];
  else if (event.key in moves) {
    const near = Math.hypot(loose[name][0] - state[name][0], loose[name][1] - state[name][1]) < 2 * SNAP;
    const from = near ? loose[name] : state[name];
    loose[name] = [from[0] + moves[event.key][0], from[1] + moves[event.key][1]];
  } else return;
  event.preventDefault();
  move(name, loose[name]);
}

find("point").addEventListener("input", (event) => { state.point = Number(event.target.value); refresh(); });
drawStill(); drawMoving(); refresh();
