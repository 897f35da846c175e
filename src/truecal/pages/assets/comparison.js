// The comparison page: the curves of all models, accuracy against calibration error, and abstention.

const names = content.models.map((model) => model.name);

// A domain around the values that is never empty, so that its ticks differ.
function around(values) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const margin = Math.max(0.1 * (high - low), 0.005);
  return [Math.max(0, low - margin), Math.min(1, high + margin)];
}

prepareTables();
startDrawing(async () => {
  const curves = Object.fromEntries(names.filter((name) => content.curves[name]).map((name) => [name, content.curves[name]]));
  await embed('reliability', curvesSpec(curves, content.bins, 'Calibration curves of the models on top of each other.'));
  if (!content.abstention.length) return;
  const accuracies = around(content.models.map((model) => model.accuracy));
  await embed('scatter', { ...chartSpec('scatter', { ...seriesValues(names), accuracies }), datasets: { models: content.models } });
  const risks = [0, Math.max(0.01, ...content.abstention.map((point) => point.risk))];
  await embed('abstention', { ...chartSpec('abstention', { ...seriesValues(names), risks }), datasets: { abstention: content.abstention } });
});
