// What the specifications of a study's charts are filled with.

const PALETTE = ['bins', 'smooth', 'isotonic', 'third', 'ink', 'off', 'bars', 'outside'];
const SHAPES = ['circle', 'square', 'triangle-up', 'diamond', 'cross', 'triangle-down', 'triangle-right', 'triangle-left'];
const SIGNS = ['●', '■', '▲', '◆', '✚', '▼', '▶', '◀'];

function familyLook(family) {
  const at = families.indexOf(family);
  return { colour: PALETTE[at % PALETTE.length], sign: SIGNS[(at + Math.floor(at / PALETTE.length)) % SIGNS.length] };
}

function familyValues() {
  const range = (pick) => families.map((family) => pick(familyLook(family)));
  return { families, familyColours: range((look) => colour(look.colour)), familyShapes: range((look) => SHAPES[SIGNS.indexOf(look.sign)]) };
}

function sizeScale() {
  const sizes = models.map((model) => model.size).filter((size) => size > 0);
  if (sizes.length < 2 || Math.min(...sizes) === Math.max(...sizes)) return { value: 110 };
  const scale = { type: 'log', domain: [Math.min(...sizes), Math.max(...sizes)], range: [45, 420], clamp: true, nice: false };
  return { condition: { test: 'datum.size > 0', field: 'size', type: 'quantitative', scale, legend: null }, value: 110 };
}

function scatterSpec(rows, label) {
  const top = Math.max(...rows.map((row) => row.value), 0);
  const ends = rows.map((row) => Math.min(row.high ?? row.value, 1.6 * top));
  const description = `${label} against error rate, one mark per model; the table of models has the numbers.`;
  return chartSpec('models', { ...familyValues(), description, label, size: sizeScale(), values: [0, Math.max(top, ...ends) || 1] });
}

function modelSpec(outcome) {
  const description = `Reliability diagram of one model: ${outcome.toLowerCase()} against confidence. The table of bins has the numbers.`;
  return chartSpec('diagram', { outcome, description });
}

function shiftSpec(label, steps) {
  return chartSpec('severity', { ...familyValues(), label, steps, description: `${label} over the severity of shift, one line per model.` });
}
