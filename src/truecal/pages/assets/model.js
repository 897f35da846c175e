// The page of one model: the controls, what they recompute, and the charts.

const controls = document.getElementById('controls');
const outcomeName = content.top_label ? 'Accuracy' : 'Outcome rate';
const scoreName = content.top_label ? 'Confidence' : 'Score';
const SCHEMES = { width: 'equal width', mass: 'equal mass', sweep: 'monotone sweep', values: 'one per distinct score' };
const NORMS = { 1: 'mean absolute', 2: 'root mean square', inf: 'maximum' };
const FLOOR = Math.max(1e-6, 10 ** Math.floor(Math.log10(0.5 / content.n)));
const HISTOGRAM_BINS = 50;
const PARTS = [['bins', 'Bins with intervals', 'bins'], ['smooth', 'Smooth curve', 'smooth'], ['band', 'Band of the curve', 'band'], ['isotonic', 'Isotonic steps', 'isotonic']];

function settings() {
  const form = new FormData(controls);
  return {
    bins: Number(document.getElementById('bins').value),
    scheme: form.get('scheme'),
    norm: form.get('norm'),
    zoom: form.get('zoom'),
    show: Object.fromEntries(PARTS.map(([name]) => [name, document.getElementById(`show-${name}`)?.checked])),
  };
}

function reference(norm) {
  const estimate = norm === '2' ? content.head : norm === '1' ? content.absolute : null;
  return estimate && { value: estimate.value, low: estimate.interval.low, high: estimate.interval.high };
}

// The decimals that show half of an interval with two significant digits, from 3 to 6, as truecal.digits has them.
function decimals(low, high) {
  return high > low ? Math.min(6, Math.max(3, 1 - Math.floor(Math.log10((high - low) / 2)))) : 4;
}

// Linear: the probability itself. Zoom: itself or its distance from 1, at least FLOOR, on a logarithmic scale.
function position(probability, zoom) {
  if (zoom === 'low') return Math.max(probability, FLOOR);
  return zoom === 'high' ? Math.max(1 - probability, FLOOR) : probability;
}

function positioned(rows, zoom) {
  return rows.map((row) => ({ ...row, x: position(row.confidence, zoom), y: position(row.outcome, zoom), y1: position(row.low, zoom), y2: position(row.high, zoom) }));
}

function curveRows(curve, zoom) {
  if (!curve) return [];
  return positioned(curve.score.map((confidence, order) => ({ order, confidence, outcome: curve.outcome[order], low: curve.low?.[order], high: curve.high?.[order] })), zoom);
}

// The share of the predictions between equal steps of an axis, by the mean score of every cell.
function histogramRows(zoom) {
  const [low, high] = zoom === 'fit' ? content.limits : [0, 1];
  const decades = -Math.log10(FLOOR);
  const log = zoom === 'low' || zoom === 'high';
  const step = (probability) => (log ? 1 + Math.log10(position(probability, zoom)) / decades : (probability - low) / (high - low));
  const edge = (k) => (log ? 10 ** (decades * (k / HISTOGRAM_BINS - 1)) : low + ((high - low) * k) / HISTOGRAM_BINS);
  const shares = new Array(HISTOGRAM_BINS).fill(0);
  const total = cells.weight[cells.weight.length - 1];
  for (let k = 0; k + 1 < cells.weight.length; k++) {
    const weight = cells.weight[k + 1] - cells.weight[k];
    const at = step((cells.score[k + 1] - cells.score[k]) / weight);
    if (at >= 0 && at <= 1) shares[Math.min(HISTOGRAM_BINS - 1, Math.floor(at * HISTOGRAM_BINS))] += weight / total;
  }
  return shares.map((share, k) => ({ x: edge(k), x2: edge(k + 1), share }));
}

function scaleOf(zoom, domain) {
  if (zoom === 'low' || zoom === 'high') return { type: 'log', domain: [FLOOR, 1], reverse: zoom === 'high', clamp: true, nice: false };
  return { domain, nice: false, padding: 6 }; // dots at the ends are drawn whole
}

function axisOf(title, zoom, more) {
  if (zoom !== 'low' && zoom !== 'high') return probabilityAxis(title, more);
  const values = [];
  for (let v = 1; v > FLOOR / 2; v /= 10) values.push(v);
  const nines = "format(1 - datum.value, '.' + max(0, round(-log(datum.value) / LN10)) + 'f')";
  return { title, values, labelExpr: zoom === 'high' ? nines : "format(datum.value, '~g')", ...more };
}

// Where outcomes lie that belong to the scores in view.
function outcomeDomain(drawn) {
  const inView = (rows) => rows.filter((row) => row.confidence >= content.limits[0] && row.confidence <= content.limits[1]);
  const ends = [...withIntervals(inView(binsOf(borders('mass', 10)))).flatMap((row) => [row.low, row.high]), ...inView(drawn).map((row) => row.outcome)];
  const curve = curveRows(content.curves.smooth, 'fit').filter(({ x }) => x >= content.limits[0] && x <= content.limits[1]);
  return hull(content.limits, [...ends, ...curve.map(({ y }) => y)]);
}

function sharesOutside() {
  const total = cells.weight[cells.weight.length - 1];
  let outside = 0;
  for (let k = 0; k < cells.low.length; k++) {
    if (cells.high[k] < content.limits[0] || cells.low[k] > content.limits[1]) outside += (cells.weight[k + 1] - cells.weight[k]) / total;
  }
  return outside;
}

function describe(state, rows, error) {
  const slider = document.getElementById('bins');
  slider.disabled = state.scheme === 'sweep' || state.scheme === 'values';
  const used = slider.disabled ? cells[state.scheme].length - 1 : state.bins;
  document.getElementById('bins-shown').textContent = used;
  document.getElementById('setting').textContent = `Binned error, ${used} ${used === 1 ? 'bin' : 'bins'}, ${SCHEMES[state.scheme]}, ${NORMS[state.norm]}: `;
  const output = document.getElementById('error');
  output.dataset.value = error;
  const band = reference(state.norm);
  const digits = decimals(band?.low, band?.high);
  output.textContent = error.toFixed(digits);
  document.getElementById('reference').textContent = band
    ? `; rank-series estimate, which needs no bins: ${band.value.toFixed(digits)} [${band.low.toFixed(digits)}, ${band.high.toFixed(digits)}]`
    : '';
  const outside = state.zoom === 'fit' ? sharesOutside() : 0;
  document.getElementById('outside-view').textContent = outside > 0 ? ` ${(100 * outside).toPrecision(2)}% of the scores lie outside these axes.` : '';
  fillBinTable(rows);
}

// The rows of every chart under the present settings.
function rowsOf(state) {
  const places = borders(state.scheme, state.bins);
  const rows = withIntervals(binsOf(places));
  const error = errorOf(rows, state.norm);
  describe(state, rows, error);
  const band = reference(state.norm);
  return {
    reliability: {
      diagonal: state.zoom === 'low' || state.zoom === 'high' ? [{ x: FLOOR, y: FLOOR }, { x: 1, y: 1 }] : DIAGONAL,
      bins: positioned(rows, state.zoom),
      smooth: curveRows(content.curves.smooth, state.zoom),
      band: curveRows(content.curves.smooth, state.zoom),
      isotonic: curveRows(content.curves.isotonic, state.zoom),
    },
    histogram: { histogram: histogramRows(state.zoom) },
    movement: {
      movement: movement(state.norm),
      band: band ? [band] : [],
      current: [{ bins: Math.min(places.length - 1, content.most_bins), error }],
    },
  };
}

function specsOf(state) {
  const shown = PARTS.filter(([name]) => state.show[name] && (name === 'bins' || content.curves[name === 'isotonic' ? name : 'smooth']));
  const domains = state.zoom === 'fit' ? [content.limits, outcomeDomain(binsOf(borders(state.scheme, state.bins)))] : [[0, 1], [0, 1]];
  const axes = {
    scaleX: scaleOf(state.zoom, domains[0]),
    scaleY: scaleOf(state.zoom, domains[1]),
    axisX: axisOf(scoreName, state.zoom),
    axisY: axisOf(outcomeName, state.zoom, AXIS_WIDTH),
  };
  const description = `Reliability diagram: ${outcomeName.toLowerCase()} against ${scoreName.toLowerCase()}. The table below it has the numbers.`;
  const reliability = chartSpec('reliability', { ...axes, description, colours: colourScale(shown.map(([, words, name]) => [words, name])) });
  const drawn = new Set(['diagonal', ...shown.map(([name]) => name)]);
  reliability.layer = reliability.layer.filter(({ name }) => drawn.has(name.split('_')[0]));
  const known = reference(state.norm) ? [['Rank series (no bins)', 'smooth'], ['Its interval', 'band']] : [];
  const colours = colourScale([['Equal width', 'bins'], ['Equal mass', 'isotonic'], ['Chosen above', 'ink'], ...known]);
  return { reliability, histogram: chartSpec('histogram', axes), movement: chartSpec('movement', { colours, binRange: [1, content.most_bins] }) };
}

async function refresh() {
  for (const [chart, datasets] of Object.entries(rowsOf(settings()))) {
    if (!views[chart]) continue;
    for (const [name, rows] of Object.entries(datasets)) if (chart !== 'reliability' || drawnParts.has(name)) views[chart].data(name, rows);
    await views[chart].runAsync();
  }
}

let drawnParts = new Set();
async function draw() {
  const state = settings();
  const specs = specsOf(state);
  drawnParts = new Set(specs.reliability.layer.map(({ name }) => name));
  for (const [chart, datasets] of Object.entries(rowsOf(state))) await embed(chart, { ...specs[chart], datasets });
  if (document.getElementById('remedies')) await embed('remedies', curvesSpec(content.remedies, [], 'Calibration curves before and after recalibration, on held-out rows.'));
}

let waiting = false;
function soon(step) {
  document.documentElement.dataset.ready = 'false';
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; next(step); });
}

controls.addEventListener('input', (event) => {
  const redrawn = event.target.type === 'checkbox' || event.target.name === 'zoom' || event.target.name === 'norm';
  if (redrawn) next(draw);
  else soon(refresh);
});
controls.addEventListener('submit', (event) => event.preventDefault());

prepareTables();
startDrawing(draw);
