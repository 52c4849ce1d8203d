// Draws the charts of a page by uPlot. A chart is JSON; the fields are those of `Chart` in the crate lasthop-page:
//
//   { kind: "lines" | "steps" | "points" | "bars" | "heat", caption, x: AXIS, y: AXIS, at: [x..], series: [{ name, y: [..], colour }],
//     rows: [edges of the heat map's rows], cells: [[values of a column, lowest row first]..], sync: "name" }
//   AXIS: { label, log, min, max, time }
//
// `figure[data-chart]` with a `.plot` and a JSON script is drawn when the page is read. A page that changes calls
// `lasthopCharts.draw(element, chart)`; what it returns has `set(chart)` and `remove()`.
"use strict";
var lasthopCharts = (() => {
  const SERIES_COLOURS = 7;
  // Where colours come near their end, they are not the only difference; dashes in a dense curve are hard to read.
  const DASHES = [[], [7, 3], [2, 3]];
  const drawn = new Set();

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (one, i) => style(`--series-${(one.colour ?? i) % SERIES_COLOURS}`);
  const figure = (v) => v == null ? "–" : Number(v.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 });

  function scale(axis, isHeight) {
    const range = (u, low, high) => {
      if (axis.log && axis.min != null && axis.max != null) return [axis.min, axis.max];
      if (axis.log) return uPlot.rangeLog(axis.min ?? low ?? 1, axis.max ?? high ?? 100, 10, false);
      if (!isHeight) return [axis.min ?? low ?? 0, axis.max ?? high ?? 1];
      const top = axis.max ?? (high > 0 ? high * 1.05 : 1);
      return [axis.min ?? Math.min(0, low ?? 0), top];
    };
    // A width that was zoomed into stays.
    return isHeight ? { range, distr: axis.log ? 3 : 1 } : { time: !!axis.time, range: axis.log ? range : undefined, distr: axis.log ? 3 : 1 };
  }

  // Of a logarithmic axis lines at powers of ten alone: those between them would hide what is drawn.
  const powers = (u, ticks) => ticks.map((v) => v != null && Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9 ? v : null);

  function axis(of, size) {
    const [text, line] = [style("--quiet"), style("--line")];
    const filter = of.log ? { filter: powers } : {};
    return {
      label: of.label, size, labelSize: 20, stroke: text, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
      grid: { stroke: line, width: 1, ...filter }, ticks: { stroke: line, width: 1, ...filter },
      values: of.time ? undefined : (u, ticks) => ticks.map((v) => v == null ? "" : figure(v)),
    };
  }

  function series(chart) {
    if (chart.kind === "heat") return [{ label: chart.x.label, value: (u, v) => figure(v) }, { label: "", show: false }];
    const paths = { steps: uPlot.paths.stepped({ align: 1 }), bars: uPlot.paths.bars({ size: [0.9, 60], align: 1 }), points: () => null }[chart.kind];
    const dots = chart.kind === "points" ? { show: true, size: chart.at.length > 300 ? 3 : 7 } : { show: false };
    return [{ label: chart.x.label, value: chart.x.time ? undefined : (u, v) => figure(v) }].concat(chart.series.map((one, i) => ({
      label: one.name, stroke: colour(one, i), width: 1.5, dash: DASHES[Math.floor(i / 4) % DASHES.length], paths,
      fill: chart.kind === "bars" ? `${colour(one, i)}80` : undefined,
      // A gap narrower than this is only the time between two values.
      points: dots, gaps: (u, s, from, to, gaps) => gaps.filter(([left, right]) => right - left > u.bbox.width / 25), value: (u, v) => figure(v),
    })));
  }

  // The cells of a heat map: the darker, the more.
  function cells(u, chart) {
    const most = Math.max(1e-12, ...chart.cells.flat().filter(Number.isFinite));
    const step = chart.at.length > 1 ? chart.at[1] - chart.at[0] : 1;
    u.ctx.save();
    u.ctx.fillStyle = style("--series-0");
    chart.cells.forEach((column, i) => column.forEach((value, row) => {
      if (!(value > 0) || !(row + 1 < chart.rows.length)) return;
      const [left, right] = [chart.at[i], chart.at[i] + step].map((x) => u.valToPos(x, "x", true));
      const [low, high] = [chart.rows[row], chart.rows[row + 1]].map((y) => u.valToPos(y, "y", true));
      u.ctx.globalAlpha = 0.1 + 0.9 * Math.sqrt(value / most);
      u.ctx.fillRect(left, high, Math.max(1, right - left), Math.max(1, low - high));
    }));
    u.ctx.restore();
  }

  const numbers = (chart) => [chart.at].concat(chart.kind === "heat" ? [chart.at.map(() => null)] : chart.series.map((one) => one.y));

  // `now` gives the chart of now: that of a page that changes is another one each time.
  function options(chart, width, now) {
    const isHeat = chart.kind === "heat";
    const y = isHeat ? { ...chart.y, min: chart.rows[0], max: chart.rows[chart.rows.length - 1] } : chart.y;
    return {
      width, height: width < 480 ? 220 : 260, series: series(chart),
      scales: { x: scale(chart.x, false), y: scale(y, true) },
      axes: [axis(chart.x, 34), axis(y, y.log ? 60 : 48)],
      cursor: { sync: chart.sync ? { key: chart.sync } : undefined, drag: { x: true, y: false }, points: { size: 7 } },
      legend: { show: !isHeat },
      hooks: isHeat ? { draw: [(u) => cells(u, now())] } : {},
    };
  }

  // The names in the legend show and hide a series, by keys too.
  function reachable(element) {
    element.querySelectorAll(".u-legend .u-series:not(:first-child) th").forEach((name) => {
      name.tabIndex = 0;
      name.setAttribute("role", "button");
      name.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        name.click();
      });
    });
  }

  function onKey(event, u) {
    const at = u.data[0], last = at.length - 1;
    const { min, max } = u.scales.x;
    const jump = Math.max(1, Math.round(last / 100));
    const now = u.cursor.idx ?? -1;
    const next = { ArrowLeft: Math.max(0, now - jump), ArrowRight: Math.min(last, now + jump), Home: 0, End: last }[event.key];
    if (next !== undefined && last >= 0) {
      u.setCursor({ left: u.valToPos(at[next], "x"), top: u.over.clientHeight / 2 });
    } else if (event.key === "+" || event.key === "-") {
      const middle = u.cursor.idx == null ? (min + max) / 2 : at[u.cursor.idx];
      const half = (max - min) * (event.key === "+" ? 0.25 : 1);
      u.setScale("x", { min: Math.max(at[0], middle - half), max: Math.min(at[last], middle + half) });
    } else if (event.key === "0") {
      u.setScale("x", { min: at[0], max: at[last] });
    } else if (event.key === "Escape") {
      u.setCursor({ left: -10, top: -10 });
    } else {
      return;
    }
    event.preventDefault();
  }

  function draw(element, chart) {
    let u = null;
    const own = {
      build() {
        u?.destroy();
        u = new uPlot(options(chart, Math.max(200, element.clientWidth), () => chart), numbers(chart), element);
        reachable(element);
      },
      // New values: the same drawing where names and kind stayed.
      set(next) {
        const isSame = next.kind === chart.kind && [next, chart].map((one) => String([one.series.map((s) => s.name), one.rows])).reduce((a, b) => a === b);
        chart = next;
        if (isSame) u.setData(numbers(chart));
        else own.build();
      },
      remove() {
        drawn.delete(own);
        watcher.disconnect();
        u.destroy();
      },
    };
    element.tabIndex = 0;
    element.setAttribute("role", "group");
    element.setAttribute("aria-roledescription", "chart");
    element.setAttribute("aria-label", `${chart.caption}. Arrow keys move the cursor, + and - zoom, 0 shows all.`);
    element.addEventListener("keydown", (event) => { if (event.target === element) onKey(event, u); });
    own.build();
    const watcher = new ResizeObserver(() => {
      const width = Math.max(200, element.clientWidth);
      if (width !== u.width) u.setSize({ width, height: width < 480 ? 220 : 260 });
    });
    watcher.observe(element);
    drawn.add(own);
    return own;
  }

  const again = () => drawn.forEach((one) => one.build());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  // Paper is white.
  addEventListener("beforeprint", () => { document.documentElement.dataset.theme = "light"; again(); });
  addEventListener("afterprint", () => { delete document.documentElement.dataset.theme; again(); });

  function drawAll() {
    document.querySelectorAll("figure[data-chart]").forEach((place) => {
      draw(place.querySelector(".plot"), JSON.parse(place.querySelector("script").textContent));
    });
  }
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", drawAll);
  else drawAll();
  return { draw };
})();
