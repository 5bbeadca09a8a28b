"use strict";
// What the page carries: an index with one row per mark, in columns, and the events themselves in packed blocks that
// are unpacked only when one is looked at. 100,000 events stay a few megabytes, and the page opens at once.

const Flag = { refused: 1, unanswered: 2 };

/** Unpacks the text of an element: base64 of gzip of UTF-8. */
async function unpack(element) {
  const packed = atob(element.textContent.trim());
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(unpacked).text();
}

/** The recorded run: rows in the order of the history, and where to find the rest of each. */
class Recording {
  static async open() {
    return new Recording(JSON.parse(await unpack(document.getElementById("index"))));
  }

  constructor(index) {
    Object.assign(this, { lanes: index.lanes, cells: index.cells, kinds: index.kinds, texts: index.texts });
    this.blockSize = index.blockSize;
    this.epoch = index.epochMs;
    this.rows = index.seq.length;
    this.seq = running(index.seq, Uint32Array);
    this.time = running(index.time, Float64Array); // microseconds since the first event
    this.span = Float64Array.from(index.span); // microseconds
    this.lane = Uint16Array.from(index.lane);
    this.cell = Uint16Array.from(index.cell); // 0: none, else number in `cells` + 1
    this.text = Uint32Array.from(index.text);
    this.status = Uint16Array.from(index.status);
    this.flags = Uint8Array.from(index.flags);
    this.answer = Uint32Array.from(index.answer); // how many events later the answer stands; 0: none
    this.end = this.time.reduce((last, at, row) => Math.max(last, at + this.span[row]), 1);
    this.findings = index.findings
      .map((finding) => ({ ...finding, row: this.rowOf(finding.seq) }))
      .filter((finding) => finding.row >= 0);
    this.blocks = [...document.querySelectorAll("script.block")];
    this.unpacked = new Map();
  }

  /** The row of an event; that of its call for an answer. -1 if it has none. */
  rowOf(seq) {
    let low = 0, high = this.rows - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      if (this.seq[middle] === seq) return middle;
      if (this.seq[middle] < seq) low = middle + 1; else high = middle - 1;
    }
    for (let row = Math.min(low, this.rows - 1); row >= 0; row--) {
      if (this.answer[row] && this.seq[row] + this.answer[row] === seq) return row;
    }
    return -1;
  }

  /** The event itself, as it stands in the history. */
  async event(seq) {
    const block = Math.floor((seq - 1) / this.blockSize);
    if (!this.unpacked.has(block)) this.unpacked.set(block, unpack(this.blocks[block]).then((text) => text.split("\n")));
    return JSON.parse((await this.unpacked.get(block))[(seq - 1) % this.blockSize]);
  }

  label(row) { return this.texts[this.text[row]]; }
  kindOf(row) { return this.lanes[this.lane[row]].kind; }
  cellOf(row) { return this.cell[row] ? this.cells[this.cell[row] - 1] : null; }
  wallTime(row) { return new Date(this.epoch + this.time[row] / 1000).toISOString(); }
}

/** Differences back into values. */
function running(differences, Type) {
  const values = new Type(differences.length);
  let sum = 0;
  for (let i = 0; i < values.length; i++) values[i] = sum += differences[i];
  return values;
}

/** What is shown: which rows, lane by lane, and which part of the time. */
class View {
  constructor(recording) {
    this.recording = recording;
    this.hiddenGroups = new Set();
    this.hiddenKinds = new Set();
    this.cell = 0; // as in Recording.cell
    this.query = "";
    this.from = 0;
    this.to = recording.end;
    this.fit();
    this.filter();
  }

  /** Sorts the rows that the filters let through into their lanes, each by time. */
  filter() {
    const { recording } = this;
    const wanted = this.query.trim().toLowerCase();
    const matches = wanted ? recording.texts.map((text) => text.toLowerCase().includes(wanted)) : null;
    this.lanes = recording.lanes
      .map((lane, number) => ({ ...lane, number, rows: [] }))
      .filter((lane) => !this.hiddenGroups.has(lane.group) && !this.hiddenKinds.has(lane.kind));
    const byNumber = new Map(this.lanes.map((lane) => [lane.number, lane.rows]));
    this.count = 0;
    for (let row = 0; row < recording.rows; row++) {
      const rows = byNumber.get(recording.lane[row]);
      if (!rows || (this.cell && recording.cell[row] !== this.cell)) continue;
      if (matches && !matches[recording.text[row]]) continue;
      rows.push(row);
      this.count++;
    }
    for (const lane of this.lanes) {
      lane.rows.sort((a, b) => recording.time[a] - recording.time[b] || a - b);
      // The longest mark tells how far before the window a mark may begin and still reach into it.
      lane.longest = lane.rows.reduce((longest, row) => Math.max(longest, recording.span[row]), 0);
    }
  }

  laneOf(row) { return this.lanes.find((lane) => lane.number === this.recording.lane[row]); }
  shows(row) { return this.laneOf(row)?.rows.includes(row) ?? false; }

  /** Position in a lane's rows of the first that begins at `time` or later. */
  firstAt(lane, time) {
    let low = 0, high = lane.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.recording.time[lane.rows[middle]] < time) low = middle + 1; else high = middle;
    }
    return low;
  }

  /** The row of a lane whose mark is nearest to `time`; undefined in an empty lane. */
  nearest(lane, time) {
    const { recording } = this;
    let best, distance = Infinity;
    for (let i = this.firstAt(lane, time - lane.longest); i < lane.rows.length; i++) {
      const row = lane.rows[i], begin = recording.time[row], end = begin + recording.span[row];
      const gap = Math.max(begin - time, time - end, 0);
      if (gap <= distance) { distance = gap; best = row; }
      if (begin - time > distance) break;
    }
    if (best !== undefined) return best;
    return lane.rows[lane.rows.length - 1];
  }

  fit() {
    const margin = this.recording.end * 0.01;
    this.from = -margin;
    this.to = this.recording.end + margin;
  }

  /** Makes the window `factor` times as wide around `time`, which stays where it is. */
  zoom(factor, time = (this.from + this.to) / 2) {
    const width = Math.min(Math.max((this.to - this.from) * factor, 50), this.recording.end * 1.02);
    const share = (time - this.from) / (this.to - this.from);
    this.from = time - share * width;
    this.to = this.from + width;
    this.clamp();
  }

  pan(distance) {
    this.from += distance;
    this.to += distance;
    this.clamp();
  }

  /** Keeps some of the run in the window. */
  clamp() {
    const width = this.to - this.from, margin = this.recording.end * 0.01;
    this.from = Math.min(Math.max(this.from, -margin), this.recording.end + margin - width);
    if (width >= this.recording.end + 2 * margin) this.from = -margin;
    this.to = this.from + width;
  }

  /** Moves the window so that a row lies well inside it. */
  reveal(row, width = this.to - this.from) {
    const time = this.recording.time[row];
    const inside = time > this.from + width * 0.1 && time < this.to - width * 0.1;
    if (inside && width === this.to - this.from) return;
    this.from = time - width / 2;
    this.to = this.from + width;
    this.clamp();
  }
}
