// Runs before the first paint: a link that carries inputs must not show the defaults' figures as its own.
if (location.search.length > 1 || location.hash.startsWith("#config=")) {
  document.documentElement.dataset.em = "pending";
  document.documentElement.dataset.emDetails = "pending";
}
