// The comparison page: the curves of all models, and accuracy against calibration error.

const names = content.models.map((model) => model.name);

function scatterSpec() {
  const x = { field: 'error', type: 'quantitative', scale: { zero: true }, axis: { title: 'Calibration error (rms)' } };
  const y = { field: 'accuracy', type: 'quantitative', scale: { zero: false, padding: 20 }, axis: { title: 'Accuracy' } };
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
