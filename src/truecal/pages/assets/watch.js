// The page of a watch: errors and evidence over time, groups by days, and the diagram before and after.

const dated = content.groups.every((group) => group.line.at.every((at) => !Number.isNaN(Date.parse(at)) && at.includes('-')));
const when = (at) => (dated ? Date.parse(at) : Number(at));
const time = { timeType: dated ? 'temporal' : 'quantitative', timeScale: dated ? { type: 'utc' } : { zero: false, nice: false }, timeAxis: { title: dated ? null : 'Batch', tickCount: 6, labelOverlap: true, labelSeparation: 8, ...(dated && { format: '%b %d' }) } };
const chosen = () => content.groups[Number(document.getElementById('group')?.value ?? 0)];
const HEAT_DAYS = 120;

function errorsSpec({ line }) {
  const days = line.at.map((at, i) => ({ at, x: when(at), batch: line.batch_error[i], error: line.error[i], low: line.low[i], high: line.high[i], rows: line.rows[i] }));
  const colours = colourScale([['Batch', 'bins'], ['So far', 'smooth'], ['Confidence sequence', 'band'], ['Tolerance', 'muted']]);
  const limits = [content.tolerance, -content.tolerance].map((value) => ({ value }));
  return { ...chartSpec('errors', { ...time, colours }), datasets: { days, limits } };
}

function evidenceSpec({ line, limit }) {
  const days = line.at.map((at, i) => ({ at, x: when(at), e: line.log_e[i] / Math.LN10 }));
  const colours = colourScale([['e-value', 'ink'], ['Alarm', 'outside']]);
  return { ...chartSpec('evidence', { ...time, colours }), datasets: { days, limit: [{ e: limit / Math.LN10 }] } };
}

function diagramSpec(group) {
  const parts = ['before', 'after'].flatMap((name) => group[name].map((bin) => ({ name, x: bin.score, y: bin.frequency, rows: bin.rows })));
  const ends = parts.flatMap(({ x, y }) => [x, y]);
  const scale = { domain: [Math.floor(10 * Math.min(...ends)) / 10, Math.ceil(10 * Math.max(...ends)) / 10], nice: false };
  const spec = chartSpec('before_after', { scaleX: scale, scaleY: scale, axisX: probabilityAxis('Score'), axisY: probabilityAxis(content.outcome, AXIS_WIDTH) });
  return { ...spec, datasets: { diagonal: DIAGONAL, parts } };
}

function heatSpec() {
  const all = content.groups.flatMap(({ name, line }) => line.at.map((at, i) => ({ group: name, at, error: line.batch_error[i], rows: line.rows[i] })));
  const days = [...new Set(all.map((cell) => cell.at))].sort((a, b) => when(a) - when(b)).slice(-HEAT_DAYS);
  const recent = new Set(days);
  const reach = Math.max(content.tolerance * 4, 0.02);
  const spec = chartSpec('heat', { days, errors: [-reach, -content.tolerance, content.tolerance, reach] });
  return { ...spec, datasets: { cells: all.filter((cell) => recent.has(cell.at)) } };
}

async function drawGroup() {
  await embed('errors', errorsSpec(chosen()));
  await embed('evidence', evidenceSpec(chosen()));
  await embed('reliability', diagramSpec(chosen()));
}

prepareTables();
document.getElementById('group')?.addEventListener('change', () => next(drawGroup));
startDrawing(async () => {
  if (document.getElementById('heat')) await embed('heat', heatSpec(), () => Math.max(200, document.getElementById('heat').clientWidth - 240));
  await drawGroup();
});
