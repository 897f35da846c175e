// The controls: read them, recompute, redraw.

const controls = document.getElementById('controls');
const outcomeName = content.top_label ? 'Accuracy' : 'Outcome rate';
const SCHEMES = { width: 'equal width', mass: 'equal mass', sweep: 'monotone sweep' };
const NORMS = { 1: 'mean absolute', 2: 'root mean square', inf: 'maximum' };

function settings() {
  const form = new FormData(controls);
  return {
    bins: Number(document.getElementById('bins').value),
    scheme: form.get('scheme'),
    norm: form.get('norm'),
    zoom: form.get('zoom'),
    show: Object.fromEntries(['bins', 'smooth', 'band', 'isotonic'].map((name) => [name, document.getElementById(`show-${name}`).checked])),
  };
}

function reference(norm) {
  const estimate = norm === '2' ? content.head : norm === '1' ? content.absolute : null;
  return estimate && { value: estimate.value, low: estimate.interval.low, high: estimate.interval.high };
}

function say(state, rows, error) {
  const slider = document.getElementById('bins');
  slider.disabled = state.scheme === 'sweep';
  const used = state.scheme === 'sweep' ? cells.sweep.length - 1 : state.bins;
  document.getElementById('bins-shown').textContent = used;
  document.getElementById('setting').textContent = `Binned error, ${used} ${used === 1 ? 'bin' : 'bins'}, ${SCHEMES[state.scheme]}, ${NORMS[state.norm]}: `;
  const output = document.getElementById('error');
  output.dataset.value = error;
  output.textContent = error.toFixed(4);
  const band = reference(state.norm);
  document.getElementById('reference').textContent = band
    ? `; rank-series estimate, which needs no bins: ${band.value.toFixed(4)} [${band.low.toFixed(4)}, ${band.high.toFixed(4)}]`
    : '';
  fillBinTable(rows);
}

// The rows of every chart under the present settings; says them in words on the way.
function rowsOf(state) {
  const places = borders(state.scheme, state.bins);
  const rows = withIntervals(binsOf(places));
  const error = errorOf(rows, state.norm);
  say(state, rows, error);
  const band = reference(state.norm);
  const curve = (name, shown = state.show[name]) => (shown ? curveRows(content.curves[name], name, state.zoom) : []);
  return {
    reliability: {
      bins: state.show.bins ? binRows(rows, state.zoom) : [],
      smooth: curve('smooth'),
      band: curve('smooth', state.show.band),
      isotonic: curve('isotonic'),
    },
    histogram: { histogram: histogramRows(state.zoom) },
    movement: {
      movement: movement(state.norm),
      band: band ? [band] : [],
      current: [{ bins: Math.min(places.length - 1, content.most_bins), error }],
    },
  };
}

async function refresh() {
  for (const [chart, datasets] of Object.entries(rowsOf(settings()))) {
    for (const [name, rows] of Object.entries(datasets)) views[chart].data(name, rows);
    await views[chart].runAsync();
  }
}

async function draw() {
  const state = settings();
  const specs = { reliability: reliabilitySpec(state.zoom, outcomeName), histogram: histogramSpec(state.zoom), movement: movementSpec() };
  for (const [chart, datasets] of Object.entries(rowsOf(state))) await embed(chart, { ...specs[chart], datasets });
  if (content.remedies) await embed('remedies', curvesSpec(content.remedies, 'Calibration curves before and after recalibration, on held-out rows.'));
}

let waiting = false;
function soon() {
  document.documentElement.dataset.ready = 'false';
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; next(refresh); });
}

controls.addEventListener('input', (event) => {
  if (event.target.name === 'zoom') next(draw);
  else soon();
});
controls.addEventListener('submit', (event) => event.preventDefault());

prepareTables();
startDrawing(draw);
