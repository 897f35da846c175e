// Calibration curves of several predictions of the same rows on top of each other.

const DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3], [10, 4], [4, 1], [12, 3, 2, 3, 2, 3]];
const SERIES = ['bins', 'smooth', 'isotonic', 'third', 'ink', 'off', 'bars', 'open'];

function seriesValues(names) {
  return { names, range: SERIES.slice(0, names.length).map(colour), dashes: DASHES.slice(0, names.length) };
}

// A range around values and the limits of the scores, within 0 and 1.
function hull(limits, values) {
  const [low, high] = [Math.min(limits[0], ...values), Math.max(limits[1], ...values)];
  const room = 0.02 * (high - low);
  return [low <= limits[0] && limits[0] === 0 ? 0 : Math.max(0, low - room), Math.min(1, high + room)];
}

function curvesSpec(curves, bins, description) {
  const names = Object.keys(curves);
  const rowsOf = (name) => curves[name].score.map((x, order) => ({ name, order, x, y: curves[name].outcome[order], low: curves[name].low?.[order], high: curves[name].high?.[order] }));
  const points = bins.map((bin) => ({ ...bin, x: bin.score, y: bin.outcome }));
  const inView = names.flatMap((name) => rowsOf(name).filter(({ x }) => x >= content.limits[0] && x <= content.limits[1]).map(({ y }) => y));
  const outcome = content.top_label ? 'Accuracy' : 'Outcome rate';
  const spec = chartSpec('curves', {
    ...seriesValues(names),
    description,
    scaleX: { domain: content.limits, nice: false },
    scaleY: { domain: hull(content.limits, inView), nice: false },
    axisX: probabilityAxis(content.top_label ? 'Confidence' : 'Score'),
    axisY: probabilityAxis(outcome, AXIS_WIDTH),
  });
  const banded = names.filter((name) => curves[name].low);
  return { ...spec, datasets: { diagonal: DIAGONAL, curves: names.flatMap(rowsOf), bands: banded.flatMap(rowsOf), bins: points } };
}
