// Runs before the first paint, so that a stored choice never flashes.
(() => {
  const root = document.documentElement;
  const read = () => {
    try { return localStorage.getItem("contend-theme"); } catch { return null; }
  };
  const write = (value) => {
    try { localStorage.setItem("contend-theme", value); } catch { /* private window */ }
  };
  const apply = (theme) => {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  apply(read());
  window.contendTheme = {
    current: () => read() || "auto",
    set(theme) { write(theme); apply(theme); },
  };
})();
