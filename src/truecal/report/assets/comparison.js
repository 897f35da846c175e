// The comparison page: calibration curves on top of each other, and accuracy against calibration error.

const DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3], [10, 4], [4, 1], [12, 3, 2, 3, 2, 3]];
const names = content.models.map((model) => model.name);

function palette() {
  return ['bins', 'smooth', 'isotonic', 'third', 'ink', 'off', 'bars', 'open'].map(colour).slice(0, names.length);
}

function seriesScale() {
  return {
    color: { field: 'name', type: 'nominal', scale: { domain: names, range: palette() }, legend: { labelLimit: 260, columns: 2 } },
  };
}

function curvesSpec() {
  const outcomeName = content.top_label ? 'Accuracy' : 'Outcome rate';
  const rows = names.flatMap((name) => content.curves[name].score.map((x, order) => (
    { name, order, x, y: content.curves[name].outcome[order] })));
  const scale = { domain: [0, 1], nice: false };
  const x = { field: 'x', type: 'quantitative', scale, axis: { title: 'Confidence', format: '.1f' } };
  const y = { field: 'y', type: 'quantitative', scale, axis: { title: outcomeName, format: '.1f', ...AXIS_WIDTH } };
  return {
    height: 360,
    description: 'Calibration curves of the models on top of each other.',
    layer: [
      {
        data: { values: [{ x: 0, y: 0 }, { x: 1, y: 1 }] },
        mark: { type: 'line', strokeDash: [5, 5], color: colour('muted'), strokeWidth: 1.5 },
        encoding: { x, y },
      },
      {
        data: { values: rows },
        mark: { type: 'line', strokeWidth: 2.5, clip: true },
        encoding: {
          x,
          y,
          order: { field: 'order' },
          ...seriesScale(),
          strokeDash: { field: 'name', scale: { domain: names, range: DASHES.slice(0, names.length) }, legend: { labelLimit: 260, columns: 2 } },
        },
      },
    ],
    config: chartTheme(),
  };
}

function scatterSpec() {
  const x = { field: 'error', type: 'quantitative', scale: { zero: true }, axis: { title: 'Calibration error (rms)' } };
  const y = { field: 'accuracy', type: 'quantitative', scale: { zero: false, padding: 20 }, axis: { title: 'Accuracy' } };
  return {
    height: 360,
    description: 'Accuracy of the models against their calibration error with its interval.',
    data: { values: content.models },
    layer: [
      { mark: { type: 'rule', strokeWidth: 1.5 }, encoding: { x: { ...x, field: 'low' }, x2: { field: 'high' }, y, ...seriesScale() } },
      {
        mark: { type: 'point', filled: true, size: 130, opacity: 1, stroke: colour('paper') },
        encoding: {
          x,
          y,
          ...seriesScale(),
          shape: { field: 'name', type: 'nominal', scale: { domain: names }, legend: { labelLimit: 260, columns: 2 } },
          tooltip: [
            { field: 'name', title: 'Model' },
            { field: 'error', title: 'Error', format: '.5f' },
            { field: 'accuracy', title: 'Accuracy', format: '.5f' },
          ],
        },
      },
    ],
    config: chartTheme(),
  };
}

prepareTables();
startDrawing(async () => {
  await embed('reliability', curvesSpec());
  await embed('scatter', scatterSpec());
});
