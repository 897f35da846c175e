// The comparison page: the curves of all models, and accuracy against calibration error.

const names = content.models.map((model) => model.name);

// A domain around the values that is never empty, so that its ticks differ.
function around(values) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const room = Math.max(0.1 * (high - low), 0.005);
  return [Math.max(0, low - room), Math.min(1, high + room)];
}

function scatterSpec() {
  const x = { field: 'error', type: 'quantitative', scale: { zero: true }, axis: { title: 'Calibration error (rms)', tickCount: 6 } };
  const domain = around(content.models.map((model) => model.accuracy));
  const y = { field: 'accuracy', type: 'quantitative', scale: { zero: false, nice: false, domain }, axis: { title: 'Accuracy' } };
  return {
    height: 360,
    description: 'Accuracy of the models against their calibration error with its interval.',
    data: { values: content.models },
    layer: [
      { mark: { type: 'rule', strokeWidth: 1.5 }, encoding: { x: { ...x, field: 'low' }, x2: { field: 'high' }, y, color: seriesColour(names) } },
      {
        mark: { type: 'point', filled: true, size: 130, opacity: 1, stroke: colour('paper') },
        encoding: {
          x,
          y,
          color: seriesColour(names),
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
  await embed('reliability', curvesSpec(content.curves, 'Calibration curves of the models on top of each other.'));
  await embed('scatter', scatterSpec());
});
