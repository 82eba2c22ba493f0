// The chart of what was spent by day, drawn from the table below it, in the colours of the page.
"use strict";
(() => {
  const read = () => {
    const rows = [...document.querySelectorAll("#days tr[data-day]")];
    return [
      rows.map((row) => Date.parse(`${row.dataset.day}T00:00:00Z`) / 1000),
      rows.map((row) => Number(row.dataset.cost)),
      rows.map((row) => Number(row.dataset.tokens)),
    ];
  };
  const colour = window.colourNow;
  const few = (number) => (number >= 1e6 ? `${(number / 1e6).toFixed(1)}M` : number >= 1e3 ? `${(number / 1e3).toFixed(0)}k` : `${number}`);
  let chart = null;
  let place = null;
  const size = () => ({ width: place.clientWidth, height: Math.max(160, place.clientHeight - 36) });
  const draw = () => {
    const there = document.getElementById("chart");
    if (!there || typeof uPlot === "undefined") return;
    if (chart) chart.destroy();
    place = there;
    place.replaceChildren();
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line-soft"), width: 1 }, ticks: { stroke: colour("--line-soft"), width: 1 } };
    const bars = uPlot.paths.bars({ size: [0.7, 40] });
    const options = {
      ...size(),
      tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      scales: { x: { time: true }, y: { range: (_, least, most) => [0, Math.max(most * 1.1, 0.01)] }, tokens: { range: (_, least, most) => [0, Math.max(most * 1.1, 10)] } },
      axes: [
        { ...axis, grid: { show: false } },
        { ...axis, size: 62, values: (_, values) => values.map((value) => `$${value < 1 ? value.toFixed(2) : value}`) },
        { ...axis, scale: "tokens", side: 1, size: 58, grid: { show: false }, values: (_, values) => values.map(few) },
      ],
      series: [
        { value: (_, at) => (at == null ? "–" : new Date(at * 1000).toISOString().slice(0, 10)), label: "Day" },
        { label: "Cost", stroke: colour("--work"), fill: colour("--work"), paths: bars, points: { show: false }, value: (_, value) => (value == null ? "–" : `$${value.toFixed(2)}`) },
        { label: "Tokens", scale: "tokens", stroke: colour("--blocked"), width: 2, dash: [5, 4], points: { size: 5 }, value: (_, value) => (value == null ? "–" : few(value)) },
      ],
    };
    chart = new uPlot(options, read(), place);
  };
  const renew = () => {
    if (!chart || document.getElementById("chart") !== place) draw();
    else chart.setData(read());
  };
  draw();
  document.body.addEventListener("htmx:afterSwap", renew);
  new ResizeObserver(() => chart && place.isConnected && chart.setSize(size())).observe(document.getElementById("main"));
  new MutationObserver(draw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();
