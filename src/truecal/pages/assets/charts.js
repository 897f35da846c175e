// The three charts as Vega-Lite specifications, and the rows they draw.

const FLOOR = Math.max(1e-6, 10 ** Math.floor(Math.log10(0.5 / content.n)));
const HISTOGRAM_BINS = 50;

// Linear: the probability itself. Zoom: its distance from 1, drawn on a reversed logarithmic scale.
function place(probability, zoom) {
  return zoom === 'log' ? Math.max(1 - probability, FLOOR) : probability;
}

function binRows(rows, zoom) {
  return rows.map((row) => ({
    ...row,
    x: place(row.confidence, zoom),
    y: place(row.outcome, zoom),
    y1: place(row.low, zoom),
    y2: place(row.high, zoom),
  }));
}

function curveRows(curve, name, zoom) {
  if (!curve) return [];
  return curve.score.map((score, order) => ({
    curve: name,
    order,
    confidence: score,
    outcome: curve.outcome[order],
    x: place(score, zoom),
    y: place(curve.outcome[order], zoom),
    y1: place(curve.low?.[order], zoom),
    y2: place(curve.high?.[order], zoom),
  }));
}

function histogramRows(zoom) {
  if (zoom === 'linear') {
    const places = borders('width', HISTOGRAM_BINS);
    const total = cells.weight[cells.weight.length - 1];
    return Array.from({ length: HISTOGRAM_BINS }, (_, k) => ({
      x: k / HISTOGRAM_BINS,
      x2: (k + 1) / HISTOGRAM_BINS,
      share: (cells.weight[places[k + 1]] - cells.weight[places[k]]) / total,
    }));
  }
  const steps = 40;
  const decades = -Math.log10(FLOOR);
  const shares = new Array(steps).fill(0);
  const total = cells.weight[cells.weight.length - 1];
  for (let k = 0; k < cells.low.length; k++) {
    const weight = cells.weight[k + 1] - cells.weight[k];
    const mean = (cells.score[k + 1] - cells.score[k]) / weight;
    const depth = (-Math.log10(place(mean, 'log')) / decades) * steps;
    shares[Math.min(steps - 1, Math.floor(depth))] += weight / total;
  }
  return shares.map((share, k) => ({
    x: 10 ** ((-decades * k) / steps),
    x2: 10 ** ((-decades * (k + 1)) / steps),
    share,
  }));
}

function axisScale(zoom) {
  return zoom === 'log'
    ? { type: 'log', domain: [FLOOR, 1], reverse: true, clamp: true, nice: false }
    : { domain: [0, 1], nice: false };
}

function axis(title, zoom, more) {
  const ticks = [];
  for (let v = 1; v > FLOOR / 2; v /= 10) ticks.push(v);
  const log = {
    values: ticks,
    labelExpr: "format(1 - datum.value, '.' + max(0, round(-log(datum.value) / LN10)) + 'f')",
  };
  return { title, ...(zoom === 'log' ? log : { format: '.1f', tickCount: 6 }), ...more };
}

function reliabilitySpec(zoom, outcomeName) {
  const scale = axisScale(zoom);
  const x = { field: 'x', type: 'quantitative', scale, axis: axis('Confidence', zoom) };
  const y = { field: 'y', type: 'quantitative', scale, axis: axis(outcomeName, zoom, AXIS_WIDTH) };
  const names = ['Bins', 'Smooth curve', 'Isotonic'];
  const colours = { scale: { domain: names, range: [colour('bins'), colour('smooth'), colour('isotonic')] } };
  const line = (data, name, dash) => ({
    data: { name: data },
    mark: { type: 'line', strokeWidth: 2.5, strokeDash: dash, clip: true },
    encoding: { x, y, order: { field: 'order' }, color: { datum: name, ...colours } },
  });
  const ends = zoom === 'log' ? [FLOOR, 1] : [0, 1];
  return {
    height: 360,
    description: `Reliability diagram: ${outcomeName.toLowerCase()} against confidence. The table below it has the numbers.`,
    layer: [
      {
        data: { values: ends.map((v) => ({ x: v, y: v })) },
        mark: { type: 'line', strokeDash: [5, 5], color: colour('muted'), strokeWidth: 1.5 },
        encoding: { x, y },
      },
      {
        data: { name: 'band' },
        mark: { type: 'area', color: colour('smooth'), opacity: 0.16, clip: true },
        encoding: { x, y: { ...y, field: 'y1' }, y2: { field: 'y2' } },
      },
      line('isotonic', 'Isotonic', [2, 2]),
      line('smooth', 'Smooth curve', [1, 0]),
      {
        data: { name: 'bins' },
        mark: { type: 'rule', strokeWidth: 1.5, clip: true },
        encoding: { x, y: { ...y, field: 'y1' }, y2: { field: 'y2' }, color: { datum: 'Bins', ...colours } },
      },
      {
        data: { name: 'bins' },
        mark: { type: 'point', filled: true, opacity: 1, stroke: colour('paper'), strokeWidth: 1 },
        encoding: {
          x,
          y,
          color: { datum: 'Bins', ...colours },
          size: { field: 'share', type: 'quantitative', scale: { domain: [0, 0.5], range: [30, 320], clamp: true }, legend: null },
          tooltip: [
            { field: 'bin', title: 'Bin' },
            { field: 'count', title: 'Predictions', format: ',.6~g' },
            { field: 'confidence', title: 'Mean confidence', format: '.5f' },
            { field: 'outcome', title: outcomeName, format: '.5f' },
            { field: 'low', title: 'Low', format: '.5f' },
            { field: 'high', title: 'High', format: '.5f' },
          ],
        },
      },
    ],
    config: chartTheme(),
  };
}

function histogramSpec(zoom) {
  return {
    height: 90,
    description: 'Histogram of the confidences.',
    data: { name: 'histogram' },
    mark: { type: 'rect', color: colour('bars') },
    encoding: {
      x: { field: 'x', type: 'quantitative', scale: axisScale(zoom), axis: axis('Confidence', zoom) },
      x2: { field: 'x2' },
      y: { field: 'share', type: 'quantitative', scale: { zero: true }, axis: { title: 'Share', format: '%', tickCount: 3, ...AXIS_WIDTH } },
      y2: { datum: 0 },
      tooltip: [{ field: 'share', title: 'Share of predictions', format: '.2%' }],
    },
    config: chartTheme(),
  };
}

function movementSpec() {
  const x = { field: 'bins', type: 'quantitative', scale: { domain: [1, content.most_bins], nice: false }, axis: { title: 'Number of bins' } };
  const y = { field: 'error', type: 'quantitative', scale: { zero: false }, axis: { title: 'Binned error', ...AXIS_WIDTH, maxExtent: 64 } };
  const names = ['width', 'mass'];
  const words = "{width: 'Equal width', mass: 'Equal mass'}[datum.label]";
  return {
    height: 360,
    description: 'Binned error against the number of bins, for equal-width and equal-mass bins.',
    layer: [
      {
        data: { name: 'band' },
        mark: { type: 'rect', color: colour('smooth'), opacity: 0.18 },
        encoding: { y: { ...y, field: 'low' }, y2: { field: 'high' } },
      },
      {
        data: { name: 'band' },
        mark: { type: 'rule', color: colour('smooth'), strokeWidth: 2 },
        encoding: { y: { ...y, field: 'value' } },
      },
      {
        data: { name: 'movement' },
        mark: { type: 'line', strokeWidth: 2 },
        encoding: {
          x,
          y,
          color: {
            field: 'scheme',
            scale: { domain: names, range: [colour('bins'), colour('isotonic')] },
            legend: { labelExpr: words },
          },
          strokeDash: { field: 'scheme', scale: { domain: names, range: [[1, 0], [5, 3]] }, legend: { labelExpr: words } },
        },
      },
      {
        data: { name: 'current' },
        mark: { type: 'point', filled: true, size: 130, color: colour('ink'), stroke: colour('paper'), opacity: 1 },
        encoding: { x, y, tooltip: [{ field: 'bins', title: 'Bins' }, { field: 'error', title: 'Error', format: '.6f' }] },
      },
    ],
    config: chartTheme(),
  };
}
