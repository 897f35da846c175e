// Exact intervals of outcome rates.

function logGamma(x) {
  // Lanczos, g = 7
  const c = [0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7];
  const t = x + 6.5;
  let sum = c[0];
  for (let i = 1; i < 9; i++) sum += c[i] / (x + i - 1);
  return 0.9189385332046727 + (x - 0.5) * Math.log(t) - t + Math.log(sum);
}

// Regularised incomplete beta function by its continued fraction (modified Lentz).
function incompleteBeta(x, a, b) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a);
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x)) / a;
  const tiny = 1e-300;
  let c = 1;
  let d = 1 - ((a + b) * x) / (a + 1);
  d = 1 / (Math.abs(d) < tiny ? tiny : d);
  let fraction = d;
  for (let m = 1; m < 5000; m++) {
    for (const step of [
      (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m)),
      (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1)),
    ]) {
      d = 1 + step * d;
      d = 1 / (Math.abs(d) < tiny ? tiny : d);
      c = 1 + step / c;
      if (Math.abs(c) < tiny) c = tiny;
      fraction *= c * d;
    }
    if (Math.abs(c * d - 1) < 1e-14) break;
  }
  return front * fraction;
}

function betaQuantile(q, a, b) {
  let [low, high] = [0, 1];
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (incompleteBeta(middle, a, b) < q) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

// Clopper-Pearson interval of an outcome rate.
function rateInterval(rate, n, level) {
  const hits = rate * n;
  const tail = (1 - level) / 2;
  return [
    hits <= 0 ? 0 : betaQuantile(tail, hits, n - hits + 1),
    hits >= n ? 1 : betaQuantile(1 - tail, hits + 1, n - hits),
  ];
}

function withIntervals(rows) {
  return rows.map((row) => {
    const [low, high] = rateInterval(row.outcome, row.count, content.level);
    return { ...row, low, high };
  });
}
