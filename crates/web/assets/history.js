// What the page remembers: a fixed number of columns, and of each direction a histogram of waiting times and the rate in it.
const COLUMNS = 180;
// Rows of the heat map: half an octave each, from 0.25 ms on. The status has eight buckets an octave.
const ROWS = 24, FIRST_MS = 0.25;

const rowOf = (upper) => upper == null ? ROWS - 1 : Math.min(ROWS - 1, Math.max(0, Math.ceil(Math.log2(upper / FIRST_MS) * 2 - 1e-6)));
// The lowest row goes down to nothing, which no logarithm shows, and the highest up to no end.
const EDGES = Array.from({ length: ROWS + 1 }, (_, row) => row === 0 ? 0.1 : row === ROWS ? 1000 : FIRST_MS * 2 ** ((row - 1) / 2));

// A histogram as { count, of: Map(upper bound -> intervals) }.
const histogram = (waiting) => ({ count: waiting?.count ?? 0, of: new Map((waiting?.buckets ?? []).map(([upper, n]) => [upper, n])) });

// What came since; all of it where the counters fell.
function since(now, before) {
  if (!before || before.count > now.count) return now;
  const of = new Map();
  for (const [upper, n] of now.of) {
    const more = n - (before.of.get(upper) ?? 0);
    if (more > 0) of.set(upper, more);
  }
  return { count: now.count - before.count, of };
}

// The wait that this part does not exceed, ms; within a bucket evenly in its logarithm.
function quantile({ of }, part) {
  const bounds = [...of].sort(([a], [b]) => (a ?? Infinity) - (b ?? Infinity));
  let left = part * bounds.reduce((sum, [, n]) => sum + n, 0), longest = null;
  for (const [upper, n] of bounds) {
    if (upper == null) break;
    longest = upper;
    if (left <= n) return upper * 2 ** ((left / n - 1) / 8);
    left -= n;
  }
  return longest;
}

class Lately {
  constructor(stepS) {
    this.stepS = stepS;
    this.at = Array.from({ length: COLUMNS }, (_, i) => (i + 1 - COLUMNS) * stepS);
    this.column = null;
    this.pid = null;
    this.of = { down: this.blank(), up: this.blank() };
  }

  blank() {
    const nothing = () => new Array(COLUMNS).fill(null);
    return { cells: Array.from({ length: COLUMNS }, () => []), used: nothing(), capacity: nothing(), kept: nothing(), before: null };
  }

  // Makes room for the column of now; while nobody told, columns stay empty.
  advance(nowMs) {
    const column = Math.floor(nowMs / 1000 / this.stepS);
    const steps = this.column == null || column < this.column ? 0 : Math.min(COLUMNS, column - this.column);
    this.column = column;
    for (const own of Object.values(this.of)) {
      for (let i = 0; i < steps; i++) {
        own.cells.push([]);
        own.cells.shift();
        for (const list of [own.used, own.capacity, own.kept]) {
          list.push(null);
          list.shift();
        }
      }
    }
    return steps > 0;
  }

  // A status; whether a new column has begun.
  take(status, nowMs) {
    const begins = this.advance(nowMs);
    const isAnother = this.pid != null && this.pid !== status.pid;
    this.pid = status.pid;
    for (const name of ["down", "up"]) {
      const own = this.of[name], direction = status.directions[name], last = COLUMNS - 1;
      const now = histogram(direction.waiting?.find((one) => one.place === "all"));
      if (isAnother) {
        own.before = { count: 0, of: new Map() };
        own.kept.fill(null);
      }
      // Of the first status only what comes after it is of this column.
      if (own.before) {
        for (const [upper, n] of since(now, own.before).of) own.cells[last][rowOf(upper)] = (own.cells[last][rowOf(upper)] ?? 0) + n;
      }
      own.before = now;
      own.kept[last] = now;
      own.used[last] = direction.rate_bps / 1e6;
      own.capacity[last] = direction.capacity_bps == null ? null : direction.capacity_bps / 1e6;
    }
    return begins;
  }

  // The histogram of the last so many seconds, as far as the page has seen them.
  last(name, seconds) {
    const own = this.of[name], from = COLUMNS - 1 - Math.ceil(seconds / this.stepS);
    const before = own.kept.find((one, i) => one && i >= from);
    return own.before && before ? since(own.before, before) : null;
  }
}

// The four charts, drawn once per column.
class Charts {
  constructor(lately) {
    this.lately = lately;
    this.drawn = new Map();
  }

  draw() {
    const { at, of, stepS } = this.lately;
    const x = { label: "seconds before now", min: at[0], max: stepS };
    const waits = (column) => Array.from({ length: ROWS }, (_, row) => column[row] ?? 0);
    for (const [name, heading] of [["down", "Downloads"], ["up", "Uploads"]]) {
      const own = of[name];
      this.set(`heat-${name}`, {
        kind: "heat", caption: `${heading}: waiting times`, x, y: { label: "waiting, ms", log: true }, at, series: [], rows: EDGES,
        cells: own.cells.map(waits), sync: "live",
      });
      this.set(`rate-${name}`, {
        kind: "lines", caption: `${heading}: capacity and what is used of it`, x, y: { label: "Mbit/s", min: 0 }, at,
        series: [{ name: "used", y: own.used, colour: 0 }, { name: "capacity", y: own.capacity, colour: 1 }], sync: "live",
      });
    }
  }

  set(id, chart) {
    const drawn = this.drawn.get(id);
    if (drawn) drawn.set(chart);
    else this.drawn.set(id, lasthopCharts.draw(document.getElementById(id), chart));
  }
}
