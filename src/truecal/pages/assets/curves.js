// Calibration curves of several predictions of the same rows on top of each other.

const DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3], [10, 4], [4, 1], [12, 3, 2, 3, 2, 3]];

function seriesColour(names) {
  const range = ['bins', 'smooth', 'isotonic', 'third', 'ink', 'off', 'bars', 'open'].map(colour).slice(0, names.length);
  return { field: 'name', type: 'nominal', scale: { domain: names, range }, legend: { labelLimit: 260, columns: 2 } };
}

function curvesSpec(curves, description) {
  const names = Object.keys(curves);
  const rows = names.flatMap((name) => curves[name].score.map((x, order) => ({ name, order, x, y: curves[name].outcome[order] })));
  const scale = { domain: [0, 1], nice: false };
  const x = { field: 'x', type: 'quantitative', scale, axis: { title: 'Confidence', format: '.1f', tickCount: 6 } };
  const outcome = content.top_label ? 'Accuracy' : 'Outcome rate';
  const y = { field: 'y', type: 'quantitative', scale, axis: { title: outcome, format: '.1f', tickCount: 6, ...AXIS_WIDTH } };
  const strokeDash = { field: 'name', scale: { domain: names, range: DASHES.slice(0, names.length) }, legend: { labelLimit: 260, columns: 2 } };
  return {
    height: 360,
    description,
    layer: [
      {
        data: { values: [{ x: 0, y: 0 }, { x: 1, y: 1 }] },
        mark: { type: 'line', strokeDash: [5, 5], color: colour('muted'), strokeWidth: 1.5 },
        encoding: { x, y },
      },
      {
        data: { values: rows },
        mark: { type: 'line', strokeWidth: 2.5, clip: true },
        encoding: { x, y, order: { field: 'order' }, color: seriesColour(names), strokeDash },
      },
    ],
    config: chartTheme(),
  };
}
