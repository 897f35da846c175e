// Small multiples: before and after recalibration, dataset by dataset, and every family over the severities of shift.

const MOST_PANELS = 8;
const glances = {};
let glanced = '';
let glanceVisible = false;
const MANY_MARKS = 500; // from which a bitmap is drawn faster than shapes

// They are drawn when they come into view, so that the explorer answers at once.
function watchGlances() {
  new IntersectionObserver(([entry]) => {
    glanceVisible = entry.isIntersecting;
    if (glanceVisible) next(drawGlances);
  }, { rootMargin: '400px' }).observe(get('glance'));
}

function panelWords(recalibrator) {
  return recalibrator === 'none' ? 'before recalibration' : `after ${recalibrator}`;
}

function rowsOfPlaces(wanted, panelOf) {
  return places.flatMap((place, index) => (wanted(place)
    ? rowsAt(index, state.measure).filter((row) => state.families.has(row.family)).map((row) => ({ ...row, severity: place.severity, panel: panelOf(place) }))
    : []));
}

// Means over the datasets of a severity, model by model.
function overDatasets(rows) {
  const sums = new Map();
  for (const row of rows) {
    const key = `${row.index}/${row.severity}`;
    const sum = sums.get(key) ?? { ...row, panel: row.family, error: 0, value: 0, count: 0 };
    sum.error += row.error;
    sum.value += row.value;
    sum.count += 1;
    sums.set(key, sum);
  }
  return [...sums.values()].map((sum) => ({ ...sum, error: sum.error / sum.count, value: sum.value / sum.count }));
}

function glanceSpec(rows, panels, chart, colouring, label) {
  const free = get(chart).clientWidth;
  const across = Math.max(1, Math.min(panels.length, Math.floor(free / 260)));
  const width = Math.min(320, Math.max(150, Math.floor(free / across) - 95));
  const height = Math.round(0.8 * width);
  const spec = chartSpec('panels', { ...familyValues(), across, panels, width, height, colouring, label, labelLimit: width + 40 });
  return { ...spec, datasets: { panels: rows } };
}

async function drawGlance(chart, rows, panels, colouring, words) {
  const figure = get(chart).closest('figure');
  figure.hidden = panels.length < 2 || rows.length === 0;
  if (figure.hidden) return;
  glances[chart]?.finalize();
  const renderer = rows.length > MANY_MARKS ? 'canvas' : 'svg';
  const options = { mode: 'vega-lite', renderer, ast: true, logLevel: ERRORS_ONLY, actions: false };
  glances[chart] = (await vegaEmbed(`#${chart}`, glanceSpec(rows, panels, chart, colouring, measures[state.measure].label), options)).view;
  get(`${chart}-words`).textContent = words;
}

async function drawGlances() {
  const { dataset, recalibrator, selection } = state.place;
  const key = JSON.stringify([state.measure, dataset, recalibrator, selection, [...state.families], colour('ink'), get('glance-datasets').clientWidth]);
  if (key === glanced) return;
  glanced = key;
  const { families: domain, familyColours: range } = familyValues();
  const color = { field: 'family', type: 'nominal', scale: { domain, range }, legend: null };
  const name = measures[state.measure].label;
  const clean = Math.min(...places.filter((place) => place.dataset === dataset).map((place) => place.severity));
  const here = (place) => place.dataset === dataset && place.severity === clean && place.selection === selection;
  const recalibrators = unique(places.filter(here).map((place) => place.recalibrator)).sort((a, b) => (a === 'none' ? -1 : b === 'none' ? 1 : a.localeCompare(b)));
  await drawGlance('glance-before', rowsOfPlaces(here, (place) => panelWords(place.recalibrator)), recalibrators.map(panelWords), color,
    `${name} (up) against error rate (across) on ${dataset}: what recalibration changes.`);
  const plain = (place) => place.severity === 0 && place.recalibrator === recalibrator && place.selection === selection;
  const datasets = unique(places.filter(plain).map((place) => place.dataset)).slice(0, MOST_PANELS);
  await drawGlance('glance-datasets', rowsOfPlaces((place) => plain(place) && datasets.includes(place.dataset), (place) => place.dataset), datasets, color,
    `${name} (up) against error rate (across), ${panelWords(recalibrator)}, dataset by dataset, without the severities of shift.`);
  const shifted = new Set(places.filter((place) => place.severity > 0).map((place) => place.dataset));
  const graded = (place) => place.recalibrator === recalibrator && place.selection === selection && (shifted.has(place.dataset) || (shifted.size > 0 && place.severity === 0 && place.dataset === dataset));
  const means = overDatasets(rowsOfPlaces(graded, (place) => place.dataset));
  const steps = unique(means.map((row) => row.severity)).sort((a, b) => a - b);
  const colouring = { field: 'severity', type: 'ordinal', scale: { scheme: 'viridis' }, legend: { title: 'severity', orient: 'top' } };
  await drawGlance('glance-families', steps.length > 1 ? means : [], families.filter((family) => state.families.has(family)).slice(0, 2 * MOST_PANELS), colouring,
    `${name} (up) against error rate (across), ${panelWords(recalibrator)}, mean over shifted datasets, one mark per model and severity.`);
}
