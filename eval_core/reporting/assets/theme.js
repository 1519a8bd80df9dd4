"use strict";
// Runs before anything is painted: a theme that was chosen once does not flash in the other one.
try {
  const chosen = localStorage.getItem("compression-eval-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be closed to pages from disk; the system's theme is used.
}
document.documentElement.classList.add("scripted");
