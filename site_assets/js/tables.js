/** Sorting and filtering of the tables that the build rendered. Rows move; nothing in them is made here. */

const collator = new Intl.Collator("en", { numeric: true });

/**
 * What a cell sorts by: the number that Python wrote beside it, else its text. Empty cells go last.
 * @param {HTMLTableRowElement} row
 * @param {number} column
 */
const keyOf = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();

/**
 * @param {HTMLTableElement} table
 * @param {HTMLTableCellElement} heading
 */
function sortBy(table, heading) {
  const column = heading.cellIndex;
  const descending = heading.getAttribute("aria-sort") === "ascending";
  const numbers = heading.hasAttribute("data-number");
  const rows = [...table.tBodies[0].rows];
  rows.sort((one, other) => {
    const [a, b] = [keyOf(one, column), keyOf(other, column)];
    if (a === "" || b === "") return a === b ? 0 : a === "" ? 1 : -1;
    const order = numbers ? Number(a) - Number(b) : collator.compare(a, b);
    return descending ? -order : order;
  });
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
  table.tBodies[0].append(...rows);
}

/** The headings' buttons begin to work. @param {HTMLTableElement} table */
function makeSortable(table) {
  for (const button of table.tHead.querySelectorAll(".em-sort")) {
    button.disabled = false;
    button.addEventListener("click", () => sortBy(table, button.closest("th")));
  }
}

/** Show the rows that hold every word. @param {HTMLInputElement} input @param {HTMLTableElement} table */
function makeFilter(input, table) {
  const count = document.getElementById(`${input.id}-count`);
  const filter = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) shown += 1;
    }
    count.textContent = words.length ? `${shown} of ${table.tBodies[0].rows.length}` : "";
  };
  input.addEventListener("input", filter);
  input.closest("[hidden]")?.removeAttribute("hidden");
}

for (const table of document.querySelectorAll("table[data-sortable]")) makeSortable(table);
for (const input of document.querySelectorAll("input[data-filter]")) {
  makeFilter(input, document.getElementById(input.dataset.filter));
}
