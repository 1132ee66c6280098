// Draws the charts of a dashboard: their queries are asked for as JSON, Vega-Lite (from datasette-dashboards) draws them as
// SVG. Nothing is evaluated as a script (`ast`), so that the page's policy need not allow it; colours are the page's own.
"use strict";

const GAP_FOR_LABELS = 170; // of a chart in rows, beside its drawing: Vega-Lite can fit only a single drawing to its box

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function theme(columns) {
  const [ink, soft, line, accent] = ["ink", "soft", "line", "accent"].map(colour);
  const series = [1, 2, 3, 4, 5, 6, 7, 8].map((number) => colour(`series-${number}`));
  const [good, bad, odd, late, quiet] = ["fill-good", "fill-bad", "fill-odd", "fill-late", "fill-quiet"].map(colour);
  const text = { labelColor: soft, titleColor: soft, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal" };
  return {
    background: "transparent",
    font: "system-ui, 'Segoe UI', 'Helvetica Neue', sans-serif",
    view: { stroke: null },
    mark: { color: accent },
    bar: { fill: accent, stroke: accent, strokeWidth: 0 },
    point: { fill: accent },
    line: { color: accent },
    rule: { color: accent },
    axis: { ...text, labelPadding: 6, gridColor: line, domainColor: line, tickColor: line },
    legend: { ...text, orient: "bottom", columns, symbolBaseStrokeColor: soft },
    header: { ...text, labelFontWeight: 600, labelColor: ink },
    range: {
      category: series,
      outcomes: [good, bad, quiet],
      endings: [bad, late, series[6], odd],
      baselines: [good, quiet, bad, late],
      // In the order of the domain: steps that were ok, the ways to fail, what runs, and what is not a step.
      spans: [accent, colour("series-light"), bad, late, series[6], odd, series[1], series[3], series[4], quiet],
    },
  };
}

function fitted(display, box) {
  if (!display.facet) return { ...display, width: "container", autosize: { type: "fit-x", contains: "padding" } };
  return { ...display, spec: { ...display.spec, width: Math.max(box.clientWidth - GAP_FOR_LABELS, 120) } };
}

// Of a scale whose domain is given only what is there needs explaining.
function explained(display, rows) {
  const { color } = display.encoding || {};
  if (!color || !color.scale || !color.scale.domain) return display;
  const values = color.scale.domain.filter((value) => rows.some((row) => row[color.field] === value));
  return { ...display, encoding: { ...display.encoding, color: { ...color, legend: { values } } } };
}

async function draw(box, chart, parameters) {
  const answer = await fetch(`/${chart.db}.json?${new URLSearchParams({ ...parameters, sql: chart.query, _shape: "objects" })}`);
  const data = await answer.json();
  if (!answer.ok || data.ok === false) throw new Error(data.error || answer.statusText);
  if (data.rows.length === 0) {
    box.textContent = "There is nothing to draw yet.";
    box.className = "chart nothing";
    return;
  }
  const render = async () => {
    await vegaEmbed(
      box,
      {
        description: `${chart.title}. ${chart.says}`,
        data: { values: data.rows },
        ...fitted(explained(chart.display, data.rows), box),
      },
      {
        ast: true,
        actions: false,
        config: theme(Math.max(1, Math.floor(box.clientWidth / 170))),
        defaultStyle: false,
        logLevel: vega.Error,
        mode: "vega-lite",
        renderer: "svg",
        tooltip: { disableDefaultStyle: true },
      },
    );
    // Vega marks it as a document to be walked through; what it says is in the rows below it.
    const svg = box.querySelector("svg");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `${chart.title}. ${chart.says}`);
  };
  await render();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", render);
  if (chart.display.facet) addEventListener("resize", render);
  if (data.truncated) {
    box.insertAdjacentElement("afterend", document.createElement("p")).textContent = "Not all rows are drawn: there are too many.";
  }
}

const dashboard = JSON.parse(document.getElementById("dashboard").textContent);
Promise.all(
  Object.entries(dashboard.charts).map(async ([name, chart]) => {
    const box = document.getElementById(`chart-${name}`);
    try {
      await draw(box, chart, dashboard.parameters);
    } catch (error) {
      box.textContent = `This chart could not be drawn: ${error.message}`;
      box.className = "chart note bad";
    }
  }),
).then(() => document.documentElement.setAttribute("data-drawn", "yes"));
