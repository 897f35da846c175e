// The page of a watch: errors and evidence over time, groups by days, and the diagram before and after.

const dated = content.groups.every((group) => group.line.at.every((at) => !Number.isNaN(Date.parse(at)) && at.includes('-')));
const when = (at) => (dated ? Date.parse(at) : Number(at));
const scaleOfTime = dated ? { type: 'utc' } : { zero: false, nice: false };
const time = { field: 'x', type: dated ? 'temporal' : 'quantitative', scale: scaleOfTime, axis: { title: dated ? null : 'Batch', tickCount: 6, labelOverlap: true } };
const chosen = () => content.groups[Number(document.getElementById('group')?.value ?? 0)];

function errorsSpec(group) {
  const { at, batch_error: batch, error, low, high, rows } = group.line;
  const values = at.map((day, i) => ({ at: day, x: when(day), batch: batch[i], error: error[i], low: low[i], high: high[i], rows: rows[i] }));
  const title = 'Mean score - frequency';
  const y = (field) => ({ field, type: 'quantitative', axis: { title, ...AXIS_WIDTH }, scale: { zero: true } });
  const limits = [content.tolerance, -content.tolerance].map((value) => ({ value }));
  const dash = [5, 5];
  return {
    height: 300,
    description: 'Error of every batch, and of all rows so far with its confidence sequence.',
    data: { values },
    layer: [
      { mark: { type: 'area', opacity: 0.18, color: colour('smooth') }, encoding: { x: time, y: y('low'), y2: { field: 'high' } } },
      { data: { values: limits }, mark: { type: 'rule', strokeDash: dash, color: colour('muted') }, encoding: { y: y('value') } },
      { mark: { type: 'line', strokeWidth: 2, color: colour('smooth') }, encoding: { x: time, y: y('error') } },
      {
        mark: { type: 'point', filled: true, size: 30, color: colour('bins') },
        encoding: {
          x: time,
          y: y('batch'),
          tooltip: [
            { field: 'at', title: 'At' },
            { field: 'rows', title: 'Rows', format: ',' },
            { field: 'batch', title: 'This batch', format: '+.4f' },
            { field: 'error', title: 'So far', format: '+.4f' },
          ],
        },
      },
    ],
    config: chartTheme(),
  };
}

function evidenceSpec(group) {
  const values = group.line.at.map((day, i) => ({ at: day, x: when(day), e: group.line.log_e[i] / Math.LN10 }));
  const axis = { title: 'e-value', labelExpr: "'1e' + format(datum.value, 'd')", tickMinStep: 1, ...AXIS_WIDTH };
  const y = { field: 'e', type: 'quantitative', axis, scale: { zero: true } };
  const limit = { data: { values: [{ e: group.limit / Math.LN10 }] }, mark: { type: 'rule', strokeDash: [5, 5], strokeWidth: 2, color: colour('outside') }, encoding: { y } };
  const tooltip = [{ field: 'at', title: 'At' }, { field: 'e', title: 'log10 of the e-value', format: '.2f' }];
  const line = { data: { values }, mark: { type: 'line', strokeWidth: 2, point: { size: 20, color: colour('ink') }, color: colour('ink') }, encoding: { x: time, y, tooltip } };
  return { height: 300, description: 'Evidence that calibration was ever off, on a log scale.', layer: [limit, line], config: chartTheme() };
}

function diagramSpec(group) {
  const parts = [['before', group.before], ['after', group.after]];
  const values = parts.flatMap(([name, part]) => part.score.map((x, i) => ({ name, x, y: part.frequency[i], rows: part.rows[i] })));
  const scale = { domain: [0, 1], nice: false };
  const x = { field: 'x', type: 'quantitative', scale, axis: { title: 'Confidence', format: '.1f', tickCount: 6 } };
  const y = { field: 'y', type: 'quantitative', scale, axis: { title: content.outcome, format: '.1f', tickCount: 6, ...AXIS_WIDTH } };
  const names = { domain: ['before', 'after'] };
  const color = { field: 'name', type: 'nominal', scale: { ...names, range: [colour('bins'), colour('smooth')] } };
  const strokeDash = { field: 'name', scale: { ...names, range: [[1, 0], [6, 3]] } };
  const shape = { field: 'name', scale: { ...names, range: ['circle', 'square'] } };
  const tooltip = ['name', 'rows', 'x', 'y'].map((field) => ({ field }));
  return {
    height: 360,
    description: 'Reliability before and after the estimated start of the change.',
    data: { values },
    layer: [
      { data: { values: [{ x: 0, y: 0 }, { x: 1, y: 1 }] }, mark: { type: 'line', strokeDash: [5, 5], color: colour('muted') }, encoding: { x, y } },
      { mark: { type: 'line', strokeWidth: 2 }, encoding: { x, y, color, strokeDash } },
      { mark: { type: 'point', filled: true, size: 50, opacity: 1 }, encoding: { x, y, color, shape, tooltip } },
    ],
    config: chartTheme(),
  };
}

const HEAT_DAYS = 120;

function heatSpec() {
  const days = [...new Set(content.groups.flatMap((group) => group.line.at))].sort((a, b) => when(a) - when(b)).slice(-HEAT_DAYS);
  const kept = new Set(days);
  const values = content.groups.flatMap((group) => group.line.at
    .map((at, i) => ({ group: group.name, at, error: group.line.batch_error[i], rows: group.line.rows[i] }))
    .filter((cell) => kept.has(cell.at)));
  const reach = Math.max(content.tolerance * 4, 0.02);
  const near = content.tolerance;
  const color = {
    field: 'error',
    type: 'quantitative',
    scale: { domain: [-reach, -near, near, reach], range: [colour('bins'), colour('paper'), colour('paper'), colour('smooth')], clamp: true, interpolate: 'rgb' },
    legend: { title: null, format: '+.2f' },
  };
  const tooltip = [{ field: 'group', title: 'Group' }, { field: 'at', title: 'At' }, { field: 'error', title: 'Error', format: '+.4f' }, { field: 'rows', title: 'Rows', format: ',' }];
  return {
    width: Math.max(200, document.getElementById('heat').clientWidth - 240),
    height: { step: 18 },
    description: 'Error of every group on every day.',
    data: { values },
    mark: { type: 'rect', stroke: colour('grid') },
    encoding: {
      x: { field: 'at', type: 'ordinal', sort: days, axis: { title: null, labelOverlap: true, labelAngle: -60 } },
      y: { field: 'group', type: 'nominal', axis: { title: null, labelLimit: 170 } },
      color,
      tooltip,
    },
    config: chartTheme(),
  };
}

async function drawGroup() {
  await embed('errors', errorsSpec(chosen()));
  await embed('evidence', evidenceSpec(chosen()));
  await embed('reliability', diagramSpec(chosen()));
}

prepareTables();
document.getElementById('group')?.addEventListener('change', () => next(drawGroup));
startDrawing(async () => {
  if (document.getElementById('heat')) await embed('heat', heatSpec());
  await drawGroup();
});
