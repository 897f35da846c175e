// Colours of the page for the charts, charts from their specifications, the switch between dark and light.

const content = JSON.parse(document.getElementById('content').textContent);

// Asking for styles and sizes makes the browser lay the page out: both are asked once, until they may have changed.
const colours = new Map();
function colour(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return colours.get(name);
}

function chartTheme() {
  return {
    background: 'transparent',
    font: 'system-ui, sans-serif',
    view: { stroke: colour('line') },
    axis: {
      labelColor: colour('muted'),
      titleColor: colour('ink'),
      titleFontWeight: 500,
      gridColor: colour('grid'),
      domainColor: colour('line'),
      tickColor: colour('line'),
      labelFontSize: 12,
      titleFontSize: 13,
    },
    legend: { labelColor: colour('ink'), labelFontSize: 12, orient: 'top', title: null, symbolSize: 120, offset: 4 },
  };
}

// A specification is JSON: "var(--name)" is a colour of the style sheet, {"$": name} a value that is given here.
function filled(part, values) {
  if (Array.isArray(part)) return part.map((item) => filled(item, values));
  if (part !== null && typeof part === 'object') {
    if ('$' in part) return values[part.$];
    return Object.fromEntries(Object.entries(part).map(([key, item]) => [key, filled(item, values)]));
  }
  const name = typeof part === 'string' ? /^var\(--([a-z]+)\)$/.exec(part) : null;
  return name ? colour(name[1]) : part;
}

function chartSpec(name, values = {}) {
  return { ...filled(content.specs[name], values), config: chartTheme() };
}

// Names with their colours, for the legend: only what is drawn.
function colourScale(pairs) {
  return { domain: pairs.map(([name]) => name), range: pairs.map(([, name]) => colour(name)) };
}

const DIAGONAL = [{ x: 0, y: 0 }, { x: 1, y: 1 }];
const probabilityAxis = (title, more) => ({ title, format: '~g', tickCount: 6, ...more });

// All charts are drawn as wide as the first column leaves room for beside the axis and the menu, so that they line up.
let room = null;
function plotWidth() {
  room ??= Math.max(180, document.getElementById('reliability').clientWidth - 125);
  return room;
}

const AXIS_WIDTH = { minExtent: 48, maxExtent: 48 };
const ERRORS_ONLY = 1;
const views = {};

const widths = {};

// Draw a chart; `width` computes its width, now and when the page gets another one.
async function embed(chart, spec, width = plotWidth) {
  if (!document.getElementById(chart)) return;
  if (views[chart]) views[chart].finalize();
  const options = {
    mode: 'vega-lite',
    renderer: 'svg',
    ast: true,
    logLevel: ERRORS_ONLY,
    actions: { export: true, source: false, compiled: false, editor: false },
    downloadFileName: `calibration-${chart}`,
  };
  const padding = { left: 5, right: 5, top: 5, bottom: 5 };
  widths[chart] = width;
  views[chart] = (await vegaEmbed(`#${chart}`, { width: width(), autosize: 'pad', padding, ...spec }, options)).view;
  document.querySelector(`#${chart} summary`)?.setAttribute('aria-label', `Save the chart as an image: ${spec.description}`);
}

let queue = Promise.resolve();
function next(step) {
  document.documentElement.dataset.ready = 'false';
  queue = queue.then(step).then(() => { document.documentElement.dataset.ready = 'true'; });
  return queue;
}

// Links to the sections that this page has.
function listSections() {
  const nav = document.querySelector('nav');
  nav?.replaceChildren(...[...document.querySelectorAll('main > section[aria-labelledby]')].map((section) => {
    const link = document.createElement('a');
    link.href = `#${section.id}`;
    link.textContent = section.querySelector('h2').textContent;
    return link;
  }));
}

// Lists the sections, and calls `recolour` where light and dark are switched.
function startPage(recolour) {
  listSections();
  document.getElementById('theme').addEventListener('click', () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
    recolour();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', recolour);
}

function startDrawing(draw) {
  startPage(() => { colours.clear(); next(draw); });
  let drawnWidth = plotWidth();
  new ResizeObserver(() => {
    if (matchMedia('print').matches) return;
    room = null;
    if (plotWidth() === drawnWidth) return;
    drawnWidth = plotWidth();
    next(() => Promise.all(Object.entries(views).map(([chart, view]) => view.width(widths[chart]()).runAsync())));
  }).observe(document.getElementById('reliability'));
  next(draw);
}
