"use strict";
// Drawing. Marks that fall on the same pixel are drawn once, so a frame costs a pass over the rows in the window and
// at most one mark for each pixel and lane, however many events there are.

const Size = { gutter: 146, axis: 34, group: 24, lane: 24, least: 3 };

/** Colours and fonts as the page's style sheet has them just now. */
function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const kinds = {};
  for (const name of KINDS) kinds[name] = colour(`--kind-${name}`);
  return {
    kinds, ink: colour("--ink"), quiet: colour("--quiet"), line: colour("--line"), card: colour("--card"),
    band: colour("--band"), bad: colour("--bad"), warn: colour("--warn"), accent: colour("--accent"),
    font: (size, weight = 400) => `${weight} ${size}px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif`,
  };
}
const KINDS = ["call", "layoutWrite", "layout", "status", "write", "read", "pod", "fault", "step", "state", "log"];

/** A canvas in CSS pixels, sharp on every screen. */
function prepare(canvas, height) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.textBaseline = "middle";
  return { context, width, height };
}

/** Where everything is: rows of the chart from top to bottom, and time along the rest. */
class Layout {
  constructor(view, width) {
    this.view = view;
    this.left = width < 560 ? 116 : Size.gutter;
    this.width = Math.max(width - this.left, 10);
    this.places = []; // {y, height, heading} or {y, height, lane}
    let y = Size.axis, group = null;
    for (const lane of view.lanes) {
      if (lane.group !== group) {
        group = lane.group;
        this.places.push({ y, height: Size.group, heading: group });
        y += Size.group;
      }
      this.places.push({ y, height: Size.lane, lane });
      y += Size.lane;
    }
    this.height = Math.max(y + 6, 90);
  }

  x(time) { return this.left + (time - this.view.from) / (this.view.to - this.view.from) * this.width; }
  time(x) { return this.view.from + (x - this.left) / this.width * (this.view.to - this.view.from); }
  placeAt(y) { return this.places.find((place) => y >= place.y && y < place.y + place.height); }
}

function paintLanes(canvas, view, state, theme) {
  const layout = new Layout(view, canvas.clientWidth);
  canvas.style.height = `${layout.height}px`;
  const { context, width, height } = prepare(canvas, layout.height);
  for (const place of layout.places) paintPlace(context, place, layout, width, theme);
  context.save();
  context.beginPath();
  context.rect(layout.left, 0, layout.width, height);
  context.clip();
  paintAxis(context, layout, height, theme);
  for (const place of layout.places) if (place.lane) paintMarks(context, place, layout, state, theme);
  paintFindings(context, layout, height, state, theme);
  if (state.selected >= 0) paintSelection(context, layout, height, state.selected, theme);
  context.restore();
  if (!view.count) paintNothing(context, layout, theme);
  return layout;
}

function paintPlace(context, place, layout, width, theme) {
  const middle = place.y + place.height / 2;
  if (place.heading !== undefined) {
    context.fillStyle = theme.band;
    context.fillRect(0, place.y, width, place.height);
    context.fillStyle = theme.ink;
    context.font = theme.font(13, 650);
    context.fillText(place.heading, 8, middle);
    return;
  }
  context.fillStyle = theme.quiet;
  context.font = theme.font(12.5);
  context.fillText(fitted(context, place.lane.title, layout.left - 22), 16, middle);
  context.fillStyle = theme.line;
  context.fillRect(layout.left, place.y + place.height - 0.5, layout.width, 0.5);
}

/** Ticks at round distances, labelled with the time since the first event. */
function paintAxis(context, layout, height, theme) {
  const step = tickStep((layout.view.to - layout.view.from) / Math.max(layout.width / 110, 2));
  context.font = theme.font(12);
  for (let tick = Math.ceil(layout.view.from / step) * step; tick <= layout.view.to; tick += step) {
    const x = layout.x(tick);
    context.fillStyle = theme.line;
    context.fillRect(x, Size.axis - 14, 0.75, height);
    context.fillStyle = theme.quiet;
    context.fillText(relative(tick, step), x + 4, 11);
  }
}

function tickStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= least);
}

/** Microseconds as people write them, exact to `step`. */
function relative(us, step = 1) {
  const sign = us < 0 ? "−" : "", value = Math.abs(us);
  if (step >= 1e6 && value >= 60e6) return `${sign}${Math.floor(value / 60e6)}:${String(Math.round(value / 1e6) % 60).padStart(2, "0")} min`;
  if (value >= 1e6 || step >= 1e5) return `${sign}${(value / 1e6).toFixed(Math.max(0, Math.min(6, 6 - Math.floor(Math.log10(step)))))} s`;
  if (value >= 1e3 || step >= 1e2) return `${sign}${(value / 1e3).toFixed(Math.max(0, Math.min(3, 3 - Math.floor(Math.log10(step)))))} ms`;
  return `${sign}${value.toFixed(0)} µs`;
}

function paintMarks(context, place, layout, state, theme) {
  const { view } = layout, { recording } = view, { lane } = place;
  const tall = lane.kind === "layoutWrite" || lane.kind === "fault";
  const top = place.y + (tall ? 3 : 6), height = place.height - (tall ? 7 : 13);
  const colour = theme.kinds[lane.kind] || theme.quiet;
  let last = -Infinity, lastRefused = -Infinity;
  context.font = theme.font(11.5);
  for (let i = view.firstAt(lane, view.from - lane.longest); i < lane.rows.length; i++) {
    const row = lane.rows[i];
    if (recording.time[row] > view.to) break;
    const refused = recording.flags[row] !== 0;
    const x = Math.round(layout.x(recording.time[row]) * 2) / 2;
    const wide = Math.max(layout.x(recording.time[row] + recording.span[row]) - x, Size.least);
    if (x + wide <= last + 0.5 && (!refused || x <= lastRefused + 0.5)) continue;
    context.fillStyle = colour;
    context.fillRect(x, top, wide, height);
    if (refused) {
      // A shape, not only a colour: what was refused or never answered has a foot.
      context.fillStyle = theme.bad;
      context.fillRect(x, top + height, wide, 3);
      lastRefused = x + wide;
    }
    last = Math.max(last, x + wide);
    const next = i + 1 < lane.rows.length ? layout.x(recording.time[lane.rows[i + 1]]) : Infinity;
    const room = Math.min(next, layout.left + layout.width) - (x + wide) - 8;
    if (room > 46) {
      context.fillStyle = row === state.selected ? theme.ink : theme.quiet;
      context.fillText(fitted(context, recording.label(row), room), x + wide + 4, place.y + place.height / 2);
    }
  }
}

/** Every finding: a line through all lanes, and a flag on the axis. */
function paintFindings(context, layout, height, state, theme) {
  let last = -Infinity;
  for (const finding of layout.view.recording.findings) {
    const x = layout.x(layout.view.recording.time[finding.row]);
    if (x < layout.left - 8 || x > layout.left + layout.width + 8 || Math.abs(x - last) < 1.5) continue;
    last = x;
    context.fillStyle = finding.severity === "unknown" ? theme.warn : theme.bad;
    context.globalAlpha = 0.55;
    context.fillRect(x - 0.5, Size.axis - 3, 1, height);
    context.globalAlpha = 1;
    context.beginPath();
    context.moveTo(x - 5, Size.axis - 12);
    context.lineTo(x + 5, Size.axis - 12);
    context.lineTo(x, Size.axis - 3);
    context.fill();
  }
}

function paintSelection(context, layout, height, row, theme) {
  const { recording } = layout.view;
  const place = layout.places.find((place) => place.lane?.number === recording.lane[row]);
  const x = layout.x(recording.time[row]);
  const wide = Math.max(layout.x(recording.time[row] + recording.span[row]) - x, Size.least);
  context.fillStyle = theme.accent;
  context.globalAlpha = 0.35;
  context.fillRect(x + wide / 2 - 0.75, Size.axis - 6, 1.5, height);
  context.globalAlpha = 1;
  if (!place) return;
  context.strokeStyle = theme.accent;
  context.lineWidth = 2;
  context.strokeRect(x - 2.5, place.y + 1.5, wide + 5, place.height - 4);
}

function paintNothing(context, layout, theme) {
  context.fillStyle = theme.quiet;
  context.font = theme.font(14);
  context.fillText("No event passes the filters.", layout.left + 12, Size.axis + 36);
}

/** The whole run in small: how much happens when, where the findings are, and which part the lanes show. */
function paintOverview(canvas, view, theme) {
  const { context, width, height } = prepare(canvas, canvas.clientHeight);
  const left = width < 560 ? 116 : Size.gutter, room = Math.max(width - left, 10);
  const { recording } = view, margin = recording.end * 0.01, whole = recording.end + 2 * margin;
  const x = (time) => left + (time + margin) / whole * room;
  context.fillStyle = theme.band;
  context.fillRect(left, 0, room, height);
  const bins = new Uint32Array(Math.ceil(room / 2));
  for (const lane of view.lanes) {
    for (const row of lane.rows) bins[Math.min(Math.floor((x(recording.time[row]) - left) / 2), bins.length - 1)]++;
  }
  const most = bins.reduce((a, b) => Math.max(a, b), 1);
  context.fillStyle = theme.quiet;
  bins.forEach((n, i) => {
    // The square root keeps a lone event visible beside a burst.
    if (n) context.fillRect(left + i * 2, height, 1.5, -Math.max(2, Math.sqrt(n / most) * (height - 10)));
  });
  for (const finding of recording.findings) {
    context.fillStyle = finding.severity === "unknown" ? theme.warn : theme.bad;
    context.fillRect(x(recording.time[finding.row]) - 1, 0, 2, height);
  }
  const [from, to] = [Math.max(x(view.from), left), Math.min(x(view.to), left + room)];
  context.fillStyle = theme.accent;
  context.globalAlpha = 0.14;
  context.fillRect(from, 0, Math.max(to - from, 2), height);
  context.globalAlpha = 1;
  context.strokeStyle = theme.accent;
  context.lineWidth = 1.5;
  context.strokeRect(from + 0.75, 0.75, Math.max(to - from - 1.5, 2), height - 1.5);
  context.fillStyle = theme.quiet;
  context.font = theme.font(12.5);
  context.fillText("Whole run", 8, height / 2);
  return (pixel) => (pixel - left) / room * whole - margin;
}

/** As much of a text as fits, with an ellipsis where it was cut. */
function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let low = 0, high = Math.min(text.length, Math.ceil(width / 3));
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle; else high = middle - 1;
  }
  return low ? `${text.slice(0, low)}…` : "";
}
