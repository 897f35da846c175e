// The explorer: selectors, what they choose, and everything that follows from it.

const get = (id) => document.getElementById(id);
const controls = get('controls');
const LENS_WORDS = { 'top-label': 'Top label', 'all-label': 'All labels', 'class-wise': 'Class-wise', '': 'Whole prediction' };
const RECALIBRATOR_WORDS = { none: 'None' };
const shownMeasures = measures.map((measure, index) => ({ ...measure, index })).filter((measure) => measure.metric !== 'error');
const start = { ...places[content.start.place] };
const state = {
  place: start,
  measure: content.start.measure,
  families: new Set(families),
  model: null,
  kind: 0,
  brushed: null,
};

function lensWords(lens) {
  return LENS_WORDS[lens] ?? lens.replace(/^class:/, 'Class ');
}

function fill(select, options, chosen) {
  select.replaceChildren(...options.map(([value, words]) => {
    const option = document.createElement('option');
    option.value = value;
    option.textContent = words;
    option.selected = value === chosen;
    return option;
  }));
  const control = select.closest('.control');
  if (control) control.hidden = options.length < 2;
}

function severities() {
  const { dataset, recalibrator, selection } = state.place;
  return unique(places.filter((place) => place.dataset === dataset && place.recalibrator === recalibrator && place.selection === selection)
    .map((place) => place.severity)).sort((a, b) => a - b);
}

// Offer what the study holds for the present choice; a choice that does not exist there becomes the nearest that does.
function offer() {
  const { place } = state;
  const offered = { dataset: unique(places.map((p) => p.dataset)) };
  const within = (names) => places.filter((p) => names.every((name) => p[name] === place[name]));
  for (const [name, given] of [['recalibrator', ['dataset']], ['selection', ['dataset', 'recalibrator']]]) {
    offered[name] = unique(within(given).map((p) => p[name]));
    if (!offered[name].includes(place[name])) [place[name]] = offered[name];
  }
  for (const [name, values] of Object.entries(offered)) {
    fill(get(name), values.map((value, i) => [String(i), name === 'recalibrator' ? RECALIBRATOR_WORDS[value] ?? value : value]), String(values.indexOf(place[name])));
    get(name).offered = values;
  }
  const steps = severities();
  if (!steps.includes(place.severity)) {
    place.severity = steps.reduce((a, b) => (Math.abs(b - place.severity) < Math.abs(a - place.severity) ? b : a));
  }
  const slider = get('severity');
  slider.max = steps.length - 1;
  slider.value = steps.indexOf(place.severity);
  slider.disabled = steps.length < 2;
  slider.setAttribute('aria-valuetext', `severity ${place.severity}`);
  get('severity-shown').textContent = place.severity === 0 ? '0 (clean)' : place.severity;
  const { lens } = measures[state.measure];
  const lenses = unique(shownMeasures.map((measure) => measure.lens));
  fill(get('lens'), lenses.map((name, i) => [String(i), lensWords(name)]), String(lenses.indexOf(lens)));
  get('lens').offered = lenses;
  const metrics = shownMeasures.filter((measure) => measure.lens === lens);
  fill(get('metric'), metrics.map((measure) => [String(measure.index), measure.label]), String(state.measure));
  get('metric').closest('.control').hidden = false;
  fill(get('kind'), diagrams.kinds.map((kind, i) => [String(i), `${lensWords(kind.lens).toLowerCase()}, equal ${kind.scheme}`]), String(state.kind));
}

function offerFamilies(name) {
  const field = get('families');
  for (const label of field.querySelectorAll('label')) label.remove();
  get('families-title').textContent = name === 'family' ? 'Families' : name;
  for (const [i, family] of families.entries()) {
    const look = familyLook(family);
    const label = document.createElement('label');
    const box = document.createElement('input');
    const sign = document.createElement('span');
    const words = document.createElement('span');
    Object.assign(box, { type: 'checkbox', checked: true, value: String(i) });
    sign.textContent = look.sign;
    sign.style.color = `var(--${look.colour})`;
    sign.setAttribute('aria-hidden', 'true');
    words.textContent = family;
    label.append(box, sign, words);
    field.append(label);
  }
  field.hidden = families.length < 2;
}

function visible(place = placeIndex(state.place)) {
  return rowsAt(place, state.measure).filter((row) => state.families.has(row.family));
}

function where() {
  const { dataset, severity, recalibrator, selection } = state.place;
  const parts = [dataset, severity === 0 ? 'clean' : `severity ${severity}`];
  parts.push(recalibrator === 'none' ? 'not recalibrated' : `after ${recalibrator}`);
  if (selection !== 'all') parts.push(`rows: ${selection}`);
  return parts.join(', ');
}

function measureWords() {
  const measure = measures[state.measure];
  return measure.lens === '' ? measure.label : `${measure.label} (${lensWords(measure.lens).toLowerCase()})`;
}

function inSentence(words) {
  return words[0].toLowerCase() + words.slice(1);
}

function cautions(rows, found) {
  const measure = measures[state.measure];
  const place = places[placeIndex(state.place)];
  const said = [];
  if (rows.length < models.length && state.families.size === families.length) {
    said.push(`${models.length - rows.length} of ${models.length} models have no number here.`);
  }
  if (measure.plain && measure.bins && place.n !== null && place.n / measure.bins < 50) {
    said.push(`${measure.bins} bins over ${place.n.toLocaleString('en')} rows leave ${(place.n / measure.bins).toFixed(0)} rows in a bin: `
      + 'this estimate leans upwards, and more for less accurate models. Compare with a debiased one or the rank series.');
  }
  if (measure.label.includes('maximum')) said.push('A maximum over bins is decided by the noisiest bin.');
  if (place.seeds === 1 && rows.length > 1) said.push('One seed only: how much a model varies from one training to the next is not known.');
  if (found.known && found.supported < found.pairs / 2) said.push('Fewer than half of the orders of two models are supported: read the ranking as groups, not as places.');
  return said;
}

function say(rows) {
  const found = support(rows);
  const verdict = get('verdict');
  const badge = verdict.querySelector('.badge');
  const kinds = ['within', 'off', 'open'];
  const kind = !found.known ? 'open' : found.rivals ? 'off' : 'within';
  verdict.classList.remove(...kinds);
  verdict.classList.add(kind);
  badge.textContent = { within: 'First place supported', off: 'First place not supported', open: 'Support unknown' }[kind];
  if (!found.best) {
    get('finding').textContent = `No model has ${inSentence(measureWords())} on ${where()}.`;
    get('support').textContent = '';
    get('cautions').replaceChildren();
    return;
  }
  const ties = rows.filter((row) => row.value === found.best.value).length - 1;
  const first = ties > 0 ? `${found.best.name} and ${ties} ${ties === 1 ? 'other' : 'others'}` : found.best.name;
  get('finding').textContent = `Lowest ${inSentence(measureWords())} on ${where()}: ${first}, ${found.best.value.toFixed(4)}.`;
  const others = rows.length - 1;
  if (!found.known) {
    get('support').textContent = others ? 'The study holds no intervals for this metric: differences between models may be noise.' : 'Only one model is shown.';
  } else {
    const place = found.rivals
      ? `Its interval overlaps those of ${found.rivals} of the ${others} other models: the data do not say which of these ${found.rivals + 1} is first.`
      : `Its interval lies below those of all ${others} other models.`;
    get('support').textContent = `${place} ${found.supported} of ${found.pairs} orders of two models are supported by intervals that do not overlap.`;
  }
  get('cautions').replaceChildren(...cautions(rows, found).map((text) => {
    const item = document.createElement('li');
    item.textContent = text;
    return item;
  }));
}

function resort(table) {
  const heads = [...table.tHead.rows[0].cells];
  const column = heads.findIndex((head) => head.hasAttribute('aria-sort'));
  if (column < 0) return;
  const descending = heads[column].getAttribute('aria-sort') === 'descending';
  if (descending) heads[column].setAttribute('aria-sort', 'ascending');
  else heads[column].removeAttribute('aria-sort');
  sortTable(table, column);
}

function cell(kind, shown, sort) {
  const made = document.createElement(kind);
  made.textContent = shown;
  if (sort !== undefined) made.dataset.sort = sort;
  return made;
}

function fillModels(rows, front) {
  const table = get('model-table');
  const kept = state.brushed ? rows.filter((row) => state.brushed.has(row.index)) : rows;
  const known = rows.every((row) => row.low !== null && row.high !== null);
  const lines = [...kept].sort((a, b) => a.value - b.value).map((row) => {
    const line = document.createElement('tr');
    const name = cell('th', '');
    const open = document.createElement('button');
    name.scope = 'row';
    name.dataset.sort = row.name;
    Object.assign(open, { type: 'button', textContent: row.name, title: 'Open its diagram' });
    open.setAttribute('aria-pressed', String(row.index === state.model));
    open.addEventListener('click', () => choose(row.index));
    name.append(open);
    const rivals = known ? rows.filter((other) => other.index !== row.index && overlap(row, other)).length : null;
    line.dataset.model = row.index;
    line.append(
      name,
      cell('td', row.kin),
      cell('td', row.size === null ? '' : row.size.toLocaleString('en'), row.size ?? -1),
      cell('td', row.error.toFixed(4), row.error),
      cell('td', row.value.toFixed(4), row.value),
      cell('td', row.low === null || row.high === null ? '' : `${row.low.toFixed(4)} to ${row.high.toFixed(4)}`, row.low ?? -1),
      cell('td', front.has(row.index) ? 'yes' : '', front.has(row.index) ? 0 : 1),
      cell('td', rivals === null ? '' : `${rivals} of ${rows.length - 1}`, rivals ?? -1),
    );
    return line;
  });
  table.tBodies[0].replaceChildren(...lines);
  resort(table);
  const hidden = rows.length - kept.length;
  get('models-heading').textContent = hidden ? `The ${kept.length} models under the brush` : `The ${kept.length} models shown`;
  get('release').parentElement.hidden = !state.brushed;
}

// Models of the front whose names fit beside their marks, from left to right.
function named(rows, front) {
  const errors = rows.map((row) => row.error);
  const room = 0.16 * (Math.max(...errors) - Math.min(...errors));
  const kept = [];
  for (const row of [...front].sort((a, b) => a.error - b.error)) {
    if (!kept.length || row.error - kept[kept.length - 1].error >= room) kept.push(row);
  }
  return kept.map((row) => ({ ...row, short: row.name.length > 18 ? `${row.name.slice(0, 17)}…` : row.name }));
}

let shown = [];

function selectedRows() {
  return shown.filter((row) => row.index === state.model);
}

async function drawAll() {
  offer();
  const rows = visible();
  shown = rows;
  const front = paretoFront(rows);
  if (!rows.some((row) => row.index === state.model)) state.model = support(rows).best?.index ?? null;
  state.brushed = null;
  say(rows);
  fillModels(rows, new Set(front.map((row) => row.index)));
  fill(get('model'), rows.map((row) => [String(row.index), row.name]), String(state.model));
  await embed('scatter', { ...scatterSpec(rows, measures[state.measure].label), datasets: { points: rows, front, selected: selectedRows(), named: named(rows, front) } });
  views.scatter.addEventListener('click', (_, item) => {
    if (item?.datum?.index !== undefined) choose(item.datum.index);
  });
  views.scatter.addSignalListener('brush', (_, extent) => brush(extent));
  await drawModel();
  if (glanceVisible) await drawGlances();
}

function brush(extent) {
  const rows = shown;
  const inside = (row) => Object.entries(extent).every(([field, [low, high]]) => row[field] >= Math.min(low, high) && row[field] <= Math.max(low, high));
  const some = Object.keys(extent).length ? rows.filter(inside) : [];
  state.brushed = some.length ? new Set(some.map((row) => row.index)) : null;
  fillModels(rows, new Set(paretoFront(rows).map((row) => row.index)));
}

async function drawModel() {
  const place = placeIndex(state.place);
  const bins = state.model === null ? null : diagramAt(state.kind, place, state.model);
  const kind = diagrams.kinds[state.kind];
  await embed('reliability', { ...modelSpec(kind?.lens === 'top-label' ? 'Accuracy' : 'Outcome rate'), datasets: { bins: bins ?? [] } });
  fillBinTable(bins ?? []);
  const name = models[state.model]?.name ?? '';
  get('reliability-words').textContent = bins
    ? `${name} on ${where()}, first seed. Below the dashed line the model is too confident.`
    : `This page holds no diagram of ${name || 'this choice'} here${diagrams.complete ? '' : ': it was left out to keep the page small'}.`;
  const steps = severities();
  get('shift').closest('figure').hidden = steps.length < 2;
  if (steps.length < 2) return;
  const lines = steps.flatMap((severity) => visible(placeIndex({ ...state.place, severity })).map((row) => ({ ...row, severity })));
  await embed('shift', { ...shiftSpec(measures[state.measure].label, steps), datasets: { lines, selected: lines.filter((row) => row.index === state.model) } });
  get('shift-words').textContent = `One line per model, coloured by family; ${name} is drawn thick.`;
}

function choose(model) {
  state.model = model;
  get('model').value = String(model);
  for (const line of get('model-table').tBodies[0].rows) {
    line.querySelector('button').setAttribute('aria-pressed', String(Number(line.dataset.model) === model));
  }
  next(async () => {
    views.scatter.data('selected', selectedRows());
    await views.scatter.runAsync();
    await drawModel();
  });
}

let waiting = false;
function soon() {
  document.documentElement.dataset.ready = 'false';
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; next(drawAll); });
}

function act({ target }) {
  const { id, value } = target;
  if (id === 'grouping') {
    groupBy(groupings[Number(value)]);
    state.families = new Set(families);
    offerFamilies(groupings[Number(value)]);
  } else if (id === 'severity') state.place.severity = severities()[Number(value)];
  else if (id === 'metric') state.measure = Number(value);
  else if (id === 'lens') {
    const same = shownMeasures.filter((measure) => measure.lens === target.offered[Number(value)]);
    state.measure = (same.find((measure) => measure.metric === measures[state.measure].metric) ?? same[0]).index;
    const kind = diagrams.kinds.findIndex((k) => k.lens === measures[state.measure].lens && k.scheme === diagrams.kinds[state.kind]?.scheme);
    if (kind >= 0) state.kind = kind;
  } else if (target.type === 'checkbox') {
    const family = families[Number(value)];
    if (target.checked) state.families.add(family);
    else state.families.delete(family);
  } else state.place[id] = target.offered[Number(value)];
  soon();
}

// Sliders and boxes answer while they move, lists when something is chosen.
controls.addEventListener('input', (event) => { if (event.target.tagName !== 'SELECT') act(event); });
controls.addEventListener('change', (event) => { if (event.target.tagName === 'SELECT') act(event); });
controls.addEventListener('submit', (event) => event.preventDefault());
get('model').addEventListener('change', ({ target }) => choose(Number(target.value)));
get('kind').addEventListener('change', ({ target }) => { state.kind = Number(target.value); next(drawModel); });
get('release').addEventListener('click', () => soon());

offerFamilies('family');
fill(get('grouping'), groupings.map((name, i) => [String(i), name]), '0');
prepareTables();
startDrawing(drawAll);
watchGlances();
