// What the theme leaves out for readers with a screen reader or without a mouse.
window.addEventListener("load", async () => {
  const each = (selector, mend) => document.querySelectorAll(selector).forEach(mend);
  const name = (selector, label, role) =>
    each(selector, (x) => {
      x.setAttribute("aria-label", label);
      if (role) x.setAttribute("role", role);
    });
  name(".sidebar-drawer", "pages of the site");
  name(".toc-drawer", "sections of the page");
  name(".content-icon-container", "source and colours", "region");
  each("[role=heading]:not([aria-level])", (x) => x.setAttribute("aria-level", "2"));
  each("th", (x) => x.textContent.trim() || x.setAttribute("role", "cell"));
  const heading = '<h1 class="visually-hidden">Search</h1>';
  each("#search-results", (x) => x.insertAdjacentHTML("beforebegin", heading));
  await window.MathJax?.startup?.promise; // formulas have their widths
  each("th mjx-container", (x) => {
    x.setAttribute("role", "math");
    x.setAttribute("aria-label", x.textContent);
  });
  each("pre, .table-wrapper, div.math", (x) => {
    const wide = x.scrollWidth > x.clientWidth, tall = x.scrollHeight > x.clientHeight;
    if (wide || tall) x.tabIndex = 0; // arrow keys scroll it
  });
});
