// uPlot makes a number format of the browser's language as it is loaded, and would fail there: a browser may report a language that
// Intl refuses, such as `en-US@posix`. Imported before anything that plots.
try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, "language", { value: "en-US", configurable: true });
}
