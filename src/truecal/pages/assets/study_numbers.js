// The numbers of a study: what the page embeds, who is on the Pareto front, and which orders the intervals support.

const { diagrams } = content;
const { models, places, measures, columns, units } = content.numbers;
const families = [];

// What models are coloured, filtered and put into panels by: their family, or a covariate. Rows carry it as `family`.
for (const model of models) model.kin = model.family;
const groupings = ['family', ...new Set(models.flatMap((model) => Object.keys(model.groups)))];
function groupBy(name) {
  for (const model of models) model.family = name === 'family' ? model.kin : model.groups[name] ?? '(unknown)';
  families.splice(0, families.length, ...[...new Set(models.map((model) => model.family))].sort((a, b) => a.localeCompare(b, 'en', { numeric: true })));
}
groupBy('family');

function unique(values) {
  return [...new Set(values)];
}

function samePlace(a, b) {
  return ['dataset', 'severity', 'recalibrator', 'selection'].every((name) => a[name] === b[name]);
}

function placeIndex(wanted) {
  return places.findIndex((place) => samePlace(place, wanted));
}

function unpacked(list, model, unit) {
  const whole = list?.[model];
  return whole === null || whole === undefined ? null : whole / unit;
}

// Every model that has both an error and a value at a place; lists are by model in the order of `models`.
function rowsAt(place, measure) {
  const errors = columns[content.numbers.error][place];
  const found = columns[measure][place];
  if (!errors || !found) return [];
  return models.map((model, index) => ({
    ...model,
    index,
    error: unpacked(errors[0], index, units.value),
    value: unpacked(found[0], index, units.value),
    low: unpacked(found[1], index, units.end),
    high: unpacked(found[2], index, units.end),
  })).filter((row) => row.error !== null && row.value !== null);
}

// Nobody else is at least as good in both and better in one. Sorted by error, so one pass with the best value so far will do.
function paretoFront(rows) {
  const sorted = [...rows].sort((a, b) => a.error - b.error || a.value - b.value);
  const front = [];
  let best = Infinity;
  let at = null;
  for (const row of sorted) {
    const twin = at !== null && row.error === at && row.value === best;
    if (row.value < best || twin) {
      front.push(row);
      best = row.value;
      at = row.error;
    }
  }
  return front;
}

function overlap(a, b) {
  return a.low <= b.high && b.low <= a.high;
}

// What the intervals say about the order of the rows: the best, its rivals, and how many orders of two are supported.
function support(rows) {
  const sorted = [...rows].sort((a, b) => a.value - b.value);
  const known = sorted.length > 1 && sorted.every((row) => row.low !== null && row.high !== null);
  if (!known) return { best: sorted[0], known };
  let supported = 0;
  for (let i = 0; i < sorted.length; i++) {
    for (let j = i + 1; j < sorted.length; j++) if (!overlap(sorted[i], sorted[j])) supported += 1;
  }
  return {
    best: sorted[0],
    known,
    rivals: sorted.slice(1).filter((row) => overlap(row, sorted[0])).length,
    supported,
    pairs: (sorted.length * (sorted.length - 1)) / 2,
  };
}

// The bins of a model's diagram at a place, or null where the page does not hold them.
function diagramAt(kind, place, model) {
  const found = diagrams.drawn[kind]?.[`${place}/${model}`];
  if (!found) return null;
  const [confidences, outcomes, packed] = found;
  const counts = packed.length === 1 ? confidences.map(() => packed[0]) : packed;
  const total = counts.reduce((a, b) => a + b, 0);
  return withIntervals(counts.map((count, k) => ({
    bin: k + 1,
    count,
    share: count / total,
    confidence: confidences[k] / diagrams.unit,
    outcome: Math.min(1, outcomes[k] / diagrams.unit),
  })));
}
