"use strict";
// Filters rows that are there already. It reads the page, sends nothing, and writes text only.
(() => {
  const form = document.getElementById("filter");
  if (!form) return;
  const rows = Array.from(document.querySelectorAll("tr[data-status]"));
  const said = document.getElementById("shown");
  const apply = () => {
    const words = form.elements.words.value.toLowerCase();
    const status = form.elements.status.value;
    let shown = 0;
    for (const row of rows) {
      const fits = (!status || row.dataset.status === status) &&
        (!words || row.textContent.toLowerCase().includes(words));
      row.hidden = !fits;
      shown += fits;
    }
    said.textContent = shown + " of " + rows.length + " calls shown";
  };
  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => { event.preventDefault(); apply(); });
  apply();
})();
