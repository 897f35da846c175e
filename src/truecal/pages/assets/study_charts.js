// The charts of a study as Vega-Lite specifications.

const PALETTE = ['bins', 'smooth', 'isotonic', 'third', 'ink', 'off', 'bars', 'outside'];
const SHAPES = ['circle', 'square', 'triangle-up', 'diamond', 'cross', 'triangle-down', 'triangle-right', 'triangle-left'];
const SIGNS = ['●', '■', '▲', '◆', '✚', '▼', '▶', '◀'];

function familyLook(family) {
  const at = families.indexOf(family);
  return { colour: PALETTE[at % PALETTE.length], sign: SIGNS[(at + Math.floor(at / PALETTE.length)) % SIGNS.length] };
}

function familyScales() {
  const range = (pick) => families.map((family) => pick(familyLook(family)));
  return {
    color: { field: 'family', type: 'nominal', scale: { domain: families, range: range((look) => colour(look.colour)) }, legend: null },
    shape: { field: 'family', type: 'nominal', scale: { domain: families, range: range((look) => SHAPES[SIGNS.indexOf(look.sign)]) }, legend: null },
  };
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
  const y = {
    field: 'value',
    type: 'quantitative',
    scale: { domain: [0, Math.max(top, ...ends) || 1], nice: true },
    axis: { title: label, format: '~g', titleLimit: 380, ...AXIS_WIDTH },
  };
  const x = { field: 'error', type: 'quantitative', scale: { zero: false, nice: true, padding: 14 }, axis: { title: 'Error rate', format: '~g' } };
  const { color, shape } = familyScales();
  return {
    height: 400,
    description: `${label} against error rate, one mark per model; the table of models has the numbers.`,
    layer: [
      {
        data: { name: 'front' },
        mark: { type: 'line', strokeDash: [6, 4], color: colour('muted'), strokeWidth: 1.5 },
        encoding: { x, y, order: { field: 'error' } },
      },
      {
        data: { name: 'points' },
        mark: { type: 'rule', strokeWidth: 1.25, opacity: 0.55, clip: true },
        encoding: { x, y: { ...y, field: 'low' }, y2: { field: 'high' }, color },
      },
      {
        data: { name: 'points' },
        params: [{ name: 'brush', select: { type: 'interval', mark: { stroke: colour('muted'), fill: colour('muted') } } }],
        mark: { type: 'point', filled: true, opacity: 0.95, stroke: colour('paper'), strokeWidth: 1, cursor: 'pointer' },
        encoding: {
          x,
          y,
          color,
          shape,
          size: sizeScale(),
          tooltip: [
            { field: 'name', title: 'Model' },
            { field: 'kin', title: 'Family' },
            { field: 'error', title: 'Error rate', format: '.5f' },
            { field: 'value', title: 'Metric', format: '.5f' },
            { field: 'low', title: 'Low', format: '.4f' },
            { field: 'high', title: 'High', format: '.4f' },
          ],
        },
      },
      {
        data: { name: 'named' },
        mark: { type: 'text', dy: 16, fontSize: 11, color: colour('muted'), limit: 120 },
        encoding: { x, y, text: { field: 'short' } },
      },
      {
        data: { name: 'selected' },
        mark: { type: 'point', shape: 'circle', size: 620, filled: false, strokeWidth: 2.5, color: colour('ink'), opacity: 1 },
        encoding: { x, y },
      },
      {
        data: { name: 'selected' },
        mark: { type: 'text', dy: -20, fontSize: 12, fontWeight: 600, color: colour('paper'), stroke: colour('paper'), strokeWidth: 4, limit: 260 },
        encoding: { x, y, text: { field: 'name' } },
      },
      {
        data: { name: 'selected' },
        mark: { type: 'text', dy: -20, fontSize: 12, fontWeight: 600, color: colour('ink'), limit: 260 },
        encoding: { x, y, text: { field: 'name' } },
      },
    ],
    config: chartTheme(),
  };
}

function modelSpec(outcomeName) {
  const scale = { domain: [0, 1], nice: false };
  const x = { field: 'confidence', type: 'quantitative', scale, axis: { title: 'Confidence', format: '.1f', tickCount: 6 } };
  const y = { field: 'outcome', type: 'quantitative', scale, axis: { title: outcomeName, format: '.1f', tickCount: 6, ...AXIS_WIDTH } };
  return {
    height: 360,
    description: `Reliability diagram of one model: ${outcomeName.toLowerCase()} against confidence. The table of bins has the numbers.`,
    layer: [
      {
        data: { values: [{ confidence: 0, outcome: 0 }, { confidence: 1, outcome: 1 }] },
        mark: { type: 'line', strokeDash: [5, 5], color: colour('muted'), strokeWidth: 1.5 },
        encoding: { x, y },
      },
      {
        data: { name: 'bins' },
        mark: { type: 'rule', strokeWidth: 1.5, color: colour('bins') },
        encoding: { x, y: { ...y, field: 'low' }, y2: { field: 'high' } },
      },
      {
        data: { name: 'bins' },
        mark: { type: 'line', strokeWidth: 1.5, color: colour('bins'), opacity: 0.6 },
        encoding: { x, y, order: { field: 'bin' } },
      },
      {
        data: { name: 'bins' },
        mark: { type: 'point', filled: true, opacity: 1, color: colour('bins'), stroke: colour('paper'), strokeWidth: 1 },
        encoding: {
          x,
          y,
          size: { field: 'share', type: 'quantitative', scale: { domain: [0, 0.5], range: [40, 320], clamp: true }, legend: null },
          tooltip: [
            { field: 'bin', title: 'Bin' },
            { field: 'count', title: 'Predictions', format: ',.6~g' },
            { field: 'confidence', title: 'Mean confidence', format: '.4f' },
            { field: 'outcome', title: outcomeName, format: '.4f' },
          ],
        },
      },
    ],
    config: chartTheme(),
  };
}

function shiftSpec(label, steps) {
  const x = { field: 'severity', type: 'quantitative', scale: { nice: false, padding: 10 }, axis: { title: 'Severity of shift', format: '~g', values: steps } };
  const y = { field: 'value', type: 'quantitative', scale: { zero: true }, axis: { title: label, format: '~g', titleLimit: 380, ...AXIS_WIDTH } };
  const { color } = familyScales();
  const tooltip = [
    { field: 'name', title: 'Model' },
    { field: 'severity', title: 'Severity' },
    { field: 'value', title: 'Metric', format: '.5f' },
  ];
  return {
    height: 400,
    description: `${label} over the severity of shift, one line per model.`,
    layer: [
      {
        data: { name: 'lines' },
        mark: { type: 'line', strokeWidth: 1.25, opacity: 0.6, point: { size: 18, filled: true } },
        encoding: { x, y, color, detail: { field: 'index' }, tooltip },
      },
      {
        data: { name: 'selected' },
        mark: { type: 'line', strokeWidth: 3.5, color: colour('ink'), point: { size: 60, filled: true, color: colour('ink') } },
        encoding: { x, y, tooltip },
      },
    ],
    config: chartTheme(),
  };
}
