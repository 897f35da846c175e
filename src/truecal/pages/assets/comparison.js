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

function abstentionSpec() {
  const percent = { format: '.0%', tickCount: 5 };
  const risks = content.abstention.map((point) => point.risk);
  return {
    height: 300,
    description: 'Share of wrong answers of each model against the share of rows that it answers.',
    data: { values: content.abstention },
    mark: { type: 'line', strokeWidth: 2 },
    encoding: {
      x: { field: 'answered', type: 'quantitative', scale: { domain: [0, 1] }, axis: { title: 'Rows answered, most confident first', ...percent } },
      y: { field: 'risk', type: 'quantitative', scale: { domain: [0, Math.max(0.01, ...risks)] }, axis: { title: 'Wrong among the answered', tickCount: 5 } },
      color: seriesColour(names),
      strokeDash: { field: 'name', type: 'nominal', scale: { domain: names }, legend: { labelLimit: 260, columns: 2 } },
      tooltip: [
        { field: 'name', title: 'Model' },
        { field: 'answered', title: 'Answered', format: '.0%' },
        { field: 'risk', title: 'Wrong', format: '.4f' },
      ],
    },
    config: chartTheme(),
  };
}

prepareTables();
startDrawing(async () => {
  await embed('reliability', curvesSpec(content.curves, 'Calibration curves of the models on top of each other.'));
  if (content.abstention.length) {
    await embed('scatter', scatterSpec());
    await embed('abstention', abstentionSpec());
  }
});
