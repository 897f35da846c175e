// Tables that sort by a click on their heading, and long ones that show a page at a time.

function sortValue(row, column) {
  const cell = row.cells[column];
  const value = cell.dataset.sort ?? cell.textContent;
  const number = Number(value);
  return value.trim() !== '' && !Number.isNaN(number) ? number : value;
}

function compareValues(a, b) {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
}

function sortTable(table, column) {
  const heads = [...table.tHead.rows[0].cells];
  const descending = heads[column].getAttribute('aria-sort') === 'ascending';
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => compareValues(sortValue(a, column), sortValue(b, column)) * (descending ? -1 : 1));
  table.tBodies[0].append(...rows);
  heads.forEach((head, i) => {
    if (i === column) head.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
    else head.removeAttribute('aria-sort');
  });
  showPage(table);
}

function showPage(table) {
  const most = Number(table.dataset.page || Infinity);
  [...table.tBodies[0].rows].forEach((row, i) => { row.hidden = i >= most; });
}

function addPaging(table) {
  const step = Number(table.dataset.page);
  const count = table.tBodies[0].rows.length;
  if (count <= step) return;
  const line = document.createElement('p');
  line.className = 'paging';
  const said = document.createElement('span');
  const more = document.createElement('button');
  const all = document.createElement('button');
  for (const button of [more, all]) button.type = 'button';
  const refresh = () => {
    showPage(table);
    const shown = Math.min(Number(table.dataset.page), count);
    said.textContent = `Showing ${shown} of ${count} rows `;
    more.textContent = `Show ${Math.min(step, count - shown)} more`;
    all.textContent = 'Show all';
    more.hidden = all.hidden = shown >= count;
  };
  more.addEventListener('click', () => { table.dataset.page = Number(table.dataset.page) + step; refresh(); });
  all.addEventListener('click', () => { table.dataset.page = count; refresh(); });
  line.append(said, more, all);
  table.closest('.scroll').after(line);
  refresh();
}

// A line below a table or figure that is wider than the page says that it scrolls.
function showOverflow() {
  for (const box of document.querySelectorAll('.scroll')) {
    const wide = box.scrollWidth > box.clientWidth + 1;
    let line = box.nextElementSibling?.classList.contains('sideways') ? box.nextElementSibling : null;
    if (wide && !line) {
      line = document.createElement('p');
      line.className = 'sideways';
      line.textContent = 'More to the right: scroll sideways →';
      box.after(line);
    }
    if (line) line.hidden = !wide;
  }
}

// Heads of columns of numbers stand above their right edge.
function alignHeads(table) {
  const cells = table.tBodies[0].rows[0]?.cells ?? [];
  [...table.tHead.rows[0].cells].forEach((head, i) => head.classList.toggle('right', i > 0 && !cells[i]?.classList.contains('words')));
}

function prepareTables() {
  showOverflow();
  addEventListener('resize', showOverflow);
  for (const table of document.querySelectorAll('table.sortable')) {
    alignHeads(table);
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      head.querySelector('button').addEventListener('click', () => sortTable(table, column));
    });
    if (table.dataset.page) addPaging(table);
  }
}

function fillBinTable(rows) {
  const body = document.querySelector('#bin-table tbody');
  body.replaceChildren(...rows.map((row) => {
    const line = document.createElement('tr');
    const values = [row.bin, row.count, row.confidence, row.outcome, row.low, row.high];
    values.forEach((value, i) => {
      const cell = document.createElement(i === 0 ? 'th' : 'td');
      if (i === 0) cell.scope = 'row';
      cell.dataset.sort = value;
      cell.textContent = i === 0 ? value : i === 1 ? Number(value.toFixed(2)).toLocaleString('en') : value.toFixed(4);
      line.append(cell);
    });
    return line;
  }));
}
