"use strict";
// What people do with the timeline: filter, zoom, pan, select, jump.

const by = (id) => document.getElementById(id);

/** An element with attributes and children; text is always set as text, never as markup. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "onclick") made.addEventListener("click", value);
    else if (value !== null) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

class Timeline {
  constructor(recording) {
    this.recording = recording;
    this.view = new View(recording);
    this.state = { selected: -1 };
    this.section = by("timeline");
    this.lanes = by("lanes");
    this.theme = readTheme();
    this.buildFilters();
    this.bindTools();
    this.bindPointer();
    this.bindOverview();
    this.lanes.addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.theme = readTheme();
      this.repaint();
    });
    new ResizeObserver(() => this.repaint()).observe(this.lanes.parentElement);
    window.addEventListener("hashchange", () => this.followHash());
    this.paint();
    this.followHash();
  }

  // ---- Drawing -------------------------------------------------------------------------------------------------

  /** Draws with the next frame, however often it is asked for before. */
  repaint() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.paint();
    });
  }

  paint() {
    this.layout = paintLanes(this.lanes, this.view, this.state, this.theme);
    this.overviewTime = paintOverview(by("overview"), this.view, this.theme);
    const total = this.recording.rows, { count } = this.view;
    by("count").textContent = count === total ? `${total.toLocaleString("en")} events`
      : `${count.toLocaleString("en")} of ${total.toLocaleString("en")} events`;
    const selected = this.state.selected < 0 ? "" : this.recording.seq[this.state.selected];
    Object.assign(this.section.dataset, { state: "ready", count, lanes: this.view.lanes.length, selected });
  }

  // ---- Filters -------------------------------------------------------------------------------------------------

  buildFilters() {
    const { recording, view } = this;
    const groups = [...new Set(recording.lanes.map((lane) => lane.group))];
    for (const group of groups) by("groups").append(this.chip(group, group, view.hiddenGroups));
    for (const kind of recording.kinds) {
      const chip = this.chip(kind.id, kind.title, view.hiddenKinds);
      chip.style.setProperty("--swatch", `var(--kind-${kind.id})`);
      by("kinds").append(chip);
    }
    recording.cells.forEach((cell, number) => by("cell").append(element("option", { value: number + 1 }, cell)));
    by("cell").addEventListener("change", () => this.filter(() => { view.cell = Number(by("cell").value); }));
    by("text").addEventListener("input", () => this.filter(() => { view.query = by("text").value; }));
    by("cell").form.addEventListener("submit", (event) => event.preventDefault());
  }

  chip(value, title, hidden) {
    const box = element("input", { type: "checkbox", value, checked: "" });
    box.addEventListener("change", () => this.filter(() => box.checked ? hidden.delete(value) : hidden.add(value)));
    return element("label", { class: "chip" }, box, title);
  }

  filter(change) {
    change();
    this.view.filter();
    this.repaint();
  }

  /** Takes away whatever filter hides a row: who jumps to an event wants to see it. */
  unhide(row) {
    const { view, recording } = this;
    if (view.shows(row)) return;
    const lane = recording.lanes[recording.lane[row]];
    view.hiddenGroups.delete(lane.group);
    view.hiddenKinds.delete(lane.kind);
    if (view.cell && view.cell !== recording.cell[row]) view.cell = 0;
    view.query = "";
    by("text").value = "";
    by("cell").value = view.cell || "";
    for (const box of document.querySelectorAll(".chip input")) {
      box.checked = !view.hiddenGroups.has(box.value) && !view.hiddenKinds.has(box.value);
    }
    view.filter();
  }

  // ---- Zooming and panning -------------------------------------------------------------------------------------

  bindTools() {
    const zoom = (factor) => { this.view.zoom(factor, this.focus()); this.repaint(); };
    by("in").addEventListener("click", () => zoom(0.5));
    by("out").addEventListener("click", () => zoom(2));
    by("fit").addEventListener("click", () => { this.view.fit(); this.repaint(); });
    const { findings } = this.recording;
    by("jumps").hidden = findings.length === 0;
    const worst = ["violation", "fail"].find((severity) => findings.some((finding) => finding.severity === severity));
    by("first").textContent = { violation: "First violation", fail: "First failure" }[worst] ?? "First finding";
    by("first").addEventListener("click", () => this.firstViolation());
    by("previous").addEventListener("click", () => this.stepFinding(-1));
    by("next").addEventListener("click", () => this.stepFinding(1));
    for (const jump of document.querySelectorAll(".jump")) {
      jump.addEventListener("click", () => this.jump(this.recording.rowOf(Number(jump.dataset.seq))));
    }
  }

  /** Where zooming holds on to: the selected event while it is in the window, else the middle. */
  focus() {
    const time = this.state.selected < 0 ? NaN : this.recording.time[this.state.selected];
    return time >= this.view.from && time <= this.view.to ? time : (this.view.from + this.view.to) / 2;
  }

  bindPointer() {
    const { lanes, view } = this;
    let drag = null;
    lanes.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      drag = { x: event.clientX, from: view.from, moved: false };
      lanes.setPointerCapture(event.pointerId);
    });
    lanes.addEventListener("pointermove", (event) => {
      if (!drag) return this.hint(event);
      if (Math.abs(event.clientX - drag.x) > 3) drag.moved = true;
      if (!drag.moved) return;
      lanes.classList.add("panning");
      by("hint").hidden = true;
      const perPixel = (view.to - view.from) / this.layout.width;
      view.pan(drag.from - (event.clientX - drag.x) * perPixel - view.from);
      this.repaint();
    });
    const release = (event) => {
      if (drag && !drag.moved && event.type === "pointerup") this.select(this.rowAt(event));
      drag = null;
      lanes.classList.remove("panning");
    };
    lanes.addEventListener("pointerup", release);
    lanes.addEventListener("pointercancel", release);
    lanes.addEventListener("pointerleave", () => { by("hint").hidden = true; });
    lanes.addEventListener("dblclick", (event) => {
      view.zoom(0.25, this.layout.time(event.offsetX));
      this.repaint();
    });
    lanes.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  /** Ctrl+wheel (and a pinch, which browsers report as that) zooms, a sideways wheel pans, any other scrolls the page. */
  wheel(event) {
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) {
      this.view.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.012), this.layout.time(event.offsetX));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.view.pan(sideways / this.layout.width * (this.view.to - this.view.from));
    } else return;
    event.preventDefault();
    this.repaint();
  }

  bindOverview() {
    const overview = by("overview");
    const move = (event) => {
      const width = this.view.to - this.view.from;
      this.view.pan(this.overviewTime(event.offsetX) - width / 2 - this.view.from);
      this.repaint();
    };
    overview.addEventListener("pointerdown", (event) => { overview.setPointerCapture(event.pointerId); move(event); });
    overview.addEventListener("pointermove", (event) => { if (event.buttons & 1) move(event); });
  }

  // ---- Selecting -----------------------------------------------------------------------------------------------

  /** The row under the pointer, within a finger's reach; -1 if there is none. */
  rowAt(event) {
    const place = this.layout.placeAt(event.offsetY);
    if (!place?.lane || event.offsetX < this.layout.left) return -1;
    const time = this.layout.time(event.offsetX);
    const row = this.view.nearest(place.lane, time);
    if (row === undefined) return -1;
    const begin = this.layout.x(this.recording.time[row]);
    const end = Math.max(this.layout.x(this.recording.time[row] + this.recording.span[row]), begin + Size.least);
    return event.offsetX > begin - 7 && event.offsetX < end + 7 ? row : -1;
  }

  hint(event) {
    const hint = by("hint"), row = this.rowAt(event);
    hint.hidden = row < 0;
    if (row < 0) return;
    hint.replaceChildren(this.recording.label(row), element("small", {}, this.facts(row)));
    const left = Math.min(event.offsetX + 14, this.lanes.clientWidth - hint.offsetWidth - 4);
    hint.style.left = `${Math.max(left, 0)}px`;
    hint.style.top = `${this.lanes.offsetTop + event.offsetY + 16}px`;
  }

  facts(row) {
    const { recording } = this, facts = [`#${recording.seq[row]}`, `+${relative(recording.time[row])}`];
    if (recording.status[row]) facts.push(`status ${recording.status[row]}`);
    if (recording.flags[row] & Flag.unanswered) facts.push("never answered");
    if (recording.span[row]) facts.push(`took ${relative(recording.span[row])}`);
    const cell = recording.cellOf(row);
    if (cell) facts.push(cell);
    return facts.join(" · ");
  }

  select(row) {
    this.state.selected = row;
    by("details").hidden = row < 0;
    if (row >= 0) this.describe(row);
    // The address names the event, so that it can be sent to somebody with the file.
    try { history.replaceState(null, "", row < 0 ? "#timeline" : `#event-${this.recording.seq[row]}`); } catch { /* not from every place */ }
    this.repaint();
  }

  /** Selects a row and brings it into view, close enough to see its neighbours. */
  jump(row) {
    if (row < 0) return;
    this.unhide(row);
    const { time, rows } = this.recording;
    const near = time[Math.min(row + 60, rows - 1)] - time[Math.max(row - 60, 0)];
    this.view.reveal(row, Math.min(this.view.to - this.view.from, Math.max(near, 2000)));
    this.select(row);
    this.section.scrollIntoView({ block: "start" });
    this.lanes.focus({ preventScroll: true });
  }

  firstViolation() {
    const { findings } = this.recording;
    const inOrder = [...findings].sort((a, b) => a.row - b.row);
    const first = (severity) => inOrder.find((finding) => finding.severity === severity);
    const found = first("violation") ?? first("fail") ?? inOrder[0];
    if (found) this.jump(found.row);
  }

  stepFinding(direction) {
    const rows = [...new Set(this.recording.findings.map((finding) => finding.row))].sort((a, b) => a - b);
    if (!rows.length) return;
    const at = this.state.selected;
    const next = direction > 0 ? rows.find((row) => row > at) ?? rows[0] : rows.findLast((row) => row < at) ?? rows.at(-1);
    this.jump(next);
  }

  followHash() {
    const found = /^#event-(\d+)$/.exec(location.hash);
    if (found) this.jump(this.recording.rowOf(Number(found[1])));
  }

  // ---- Details -------------------------------------------------------------------------------------------------

  async describe(row) {
    const { recording } = this, details = by("details");
    const findings = recording.findings.filter((finding) => finding.row === row);
    const raw = element("pre", { tabindex: "0", "aria-label": "The event as recorded" }, "…");
    details.replaceChildren(
      element("div", { class: "bar" }, element("h3", {}, recording.label(row)),
        element("button", { type: "button", "aria-label": "Close the details", onclick: () => this.select(-1) }, "×")),
      element("p", { class: "facts" }, `${this.facts(row)} · ${recording.wallTime(row)}`),
      ...findings.map((finding) => element("p", { class: finding.severity === "unknown" ? "finding open" : "finding" },
        `${finding.check}: ${finding.message}`)),
      raw, this.neighbours(row));
    const seqs = [recording.seq[row], recording.answer[row] && recording.seq[row] + recording.answer[row]].filter(Boolean);
    const events = await Promise.all(seqs.map((seq) => recording.event(seq)));
    raw.textContent = events.map((event) => JSON.stringify(event, null, 2)).join("\n");
  }

  /** What happened just before and after among the rows that are shown. */
  neighbours(row) {
    const { recording, view } = this, before = [], after = [];
    const shown = new Set(view.lanes.map((lane) => lane.number));
    const wanted = (other) => shown.has(recording.lane[other]) && (!view.cell || recording.cell[other] === view.cell);
    for (let other = row - 1; other >= 0 && before.length < 6; other--) if (wanted(other)) before.unshift(other);
    for (let other = row + 1; other < recording.rows && after.length < 6; other++) if (wanted(other)) after.push(other);
    const line = (other) => element("li", {}, element("button",
      { type: "button", "aria-current": other === row ? "true" : null, title: recording.label(other), onclick: () => this.jump(other) },
      element("i", {}, `${other < row ? "−" : "+"}${relative(Math.abs(recording.time[other] - recording.time[row]))}`),
      element("i", {}, recording.lanes[recording.lane[other]].group), element("span", {}, recording.label(other))));
    return element("ol", { "aria-label": "Events around it" }, ...[...before, row, ...after].map(line));
  }

  // ---- Keyboard ------------------------------------------------------------------------------------------------

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const zoom = (factor) => this.view.zoom(factor, this.focus());
    const width = this.view.to - this.view.from;
    const actions = {
      ArrowRight: () => this.stepEvent(1), ArrowLeft: () => this.stepEvent(-1),
      ArrowDown: () => this.stepLane(1), ArrowUp: () => this.stepLane(-1),
      PageDown: () => this.view.pan(width * 0.8), PageUp: () => this.view.pan(-width * 0.8),
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => this.view.fit(),
      v: () => this.firstViolation(), n: () => this.stepFinding(1), N: () => this.stepFinding(-1),
      Escape: () => this.select(-1),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
    this.repaint();
  }

  stepEvent(direction) {
    const lane = this.state.selected < 0 ? undefined : this.view.laneOf(this.state.selected);
    if (!lane) return this.selectIn(this.view.lanes.find((lane) => lane.rows.length));
    const next = lane.rows[lane.rows.indexOf(this.state.selected) + direction];
    if (next !== undefined) this.show(next);
  }

  stepLane(direction) {
    const filled = this.view.lanes.filter((lane) => lane.rows.length);
    const at = filled.findIndex((lane) => this.state.selected >= 0 && lane.number === this.recording.lane[this.state.selected]);
    this.selectIn(filled[at < 0 ? 0 : at + direction]);
  }

  selectIn(lane) {
    if (lane) this.show(this.view.nearest(lane, this.focus()));
  }

  show(row) {
    this.view.reveal(row);
    this.select(row);
  }
}

if (by("index")) Recording.open().then((recording) => { new Timeline(recording); });
