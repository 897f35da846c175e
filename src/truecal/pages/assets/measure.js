// Errors from the embedded prefix sums. Where bins begin was decided in Python; here sums are only subtracted and averaged.

const { cells } = content;

function borders(scheme, bins) {
  return scheme === 'sweep' || scheme === 'values' ? cells[scheme] : cells[scheme][bins - 1];
}

// The filled bins between borders: share of the data, sample size, mean score, outcome rate.
function binsOf(places) {
  const total = cells.weight[cells.weight.length - 1];
  const rows = [];
  for (let k = 0; k + 1 < places.length; k++) {
    const [from, to] = [places[k], places[k + 1]];
    const weight = cells.weight[to] - cells.weight[from];
    if (weight <= 0) continue;
    rows.push({
      bin: rows.length + 1,
      share: weight / total,
      count: weight * cells.scale,
      confidence: (cells.score[to] - cells.score[from]) / weight,
      outcome: (cells.outcome[to] - cells.outcome[from]) / weight,
    });
  }
  return rows;
}

function errorOf(rows, norm) {
  const gaps = rows.map((row) => Math.abs(row.outcome - row.confidence));
  if (norm === 'inf') return gaps.reduce((a, b) => Math.max(a, b), 0);
  const p = Number(norm);
  const power = rows.reduce((sum, row, k) => sum + row.share * gaps[k] ** p, 0);
  return power ** (1 / p);
}

// The error for every number of bins, both schemes.
function movement(norm) {
  const rows = [];
  for (const [scheme, words] of [['width', 'Equal width'], ['mass', 'Equal mass']]) {
    for (let bins = 1; bins <= content.most_bins; bins++) {
      rows.push({ scheme: words, bins, error: errorOf(binsOf(borders(scheme, bins)), norm) });
    }
  }
  return rows;
}
