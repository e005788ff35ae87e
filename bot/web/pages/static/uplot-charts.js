// Draw the tables of charts. Without this script they are read as tables.
(() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const compact = new Intl.NumberFormat(document.documentElement.lang, { notation: "compact", maximumFractionDigits: 1 });

  function read(figure) {
    const heads = [...figure.querySelectorAll("thead th")];
    const rows = [...figure.querySelectorAll("tbody tr")];
    const labels = rows.map((row) => row.cells[0].textContent);
    const series = heads
      .map((head, at) => ({ name: head.textContent, draw: head.dataset.draw, at }))
      .filter((each) => each.at > 0);
    const valueOf = (cell) => (cell.dataset.value === "" ? null : Number(cell.dataset.value));
    const values = series.map((each) => rows.map((row) => valueOf(row.cells[each.at])));
    const said = series.map((each) => rows.map((row) => row.cells[each.at].textContent));
    return { labels, series, values, said };
  }

  function draw(figure) {
    const { labels, series, values, said } = read(figure);
    const drawn = series.map((each, at) => ({ ...each, index: at })).filter((each) => each.draw)
      .sort((a, b) => (a.draw === "line") - (b.draw === "line")); // the line is drawn over the bars
    const place = document.createElement("div");
    place.className = "canvas";
    place.setAttribute("aria-hidden", "true");
    const readout = figure.querySelector(".readout");
    readout.after(place);
    figure.querySelector("details").removeAttribute("open");
    const both = drawn.length > 1;
    const one = figure.dataset.chart === "one-scale"; // both count alike
    const scaleOf = (each) => (one ? drawn[0].draw : each.draw);
    const key = both ? drawn.map((each) => `${each.draw === "bars" ? "\u25ae" : "\u2501"} ${each.name}`).join("   ") : "";
    readout.textContent = key;
    let plot = null;

    function options() {
      const bars = uPlot.paths.bars({ size: [0.62, 28], radius: 0.2 });
      const accent = colour("--accent"), soft = colour("--accent-soft"), grid = colour("--hairline"), ink = colour("--ink-soft");
      const font = `11px Inter, system-ui, sans-serif`;
      return {
        width: place.clientWidth,
        height: 200,
        padding: [8, 4, 0, 0],
        legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
        scales: Object.fromEntries([["x", { time: false, range: (u, min, max) => [min - 0.6, max + 0.6] }],
          ...drawn.map((each) => [scaleOf(each), { range: (u, min, max) => [0, Math.max(1, max) * 1.08] }])]),
        axes: [
          { stroke: ink, font, grid: { show: false }, ticks: { show: false }, size: 26, space: 78,
            splits: (u, axis, min, max, step) => {
              const found = [];
              for (let at = 0; at < labels.length; at += Math.max(1, Math.round(step))) found.push(at);
              return found;
            },
            values: (u, splits) => splits.map((at) => labels[at] ?? "") },
          ...drawn.slice(0, one ? 1 : 2).map((each, n) => ({
            scale: scaleOf(each), side: n ? 1 : 3, stroke: ink, font, size: 46, ticks: { show: false },
            grid: n ? { show: false } : { stroke: grid, width: 1 },
            values: (u, splits) => splits.map((value) => (Number.isInteger(value) ? compact.format(value) : "")) })),
        ],
        series: [{}, ...drawn.map((each) => each.draw === "bars"
          ? { scale: scaleOf(each), paths: bars, fill: both ? soft : accent, stroke: both ? soft : accent, width: 0, points: { show: false } }
          : { scale: scaleOf(each), stroke: accent, width: 2,
              points: { show: labels.length === 1 || values[each.index].includes(null), size: 5, fill: accent } })],
        hooks: {
          setCursor: [(u) => {
            const at = u.cursor.idx;
            readout.textContent = at === null || at === undefined ? key
              : `${labels[at]}: ${series.map((each, n) => `${said[n][at]} ${each.name}`).join(" · ")}`;
          }],
        },
      };
    }

    function redraw() {
      if (plot) plot.destroy();
      plot = new uPlot(options(), [labels.map((_, at) => at), ...drawn.map((each) => values[each.index])], place);
    }

    redraw();
    new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: 200 })).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const figure of document.querySelectorAll("figure[data-chart]")) draw(figure);
  });
})();
