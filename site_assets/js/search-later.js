/**
 * Starts the theme's search when somebody is about to use it: it brings a worker and an index of its own.
 * @param {() => void} start
 */
function whenSearched(start) {
  const TYPED_INTO = "input, select, textarea, [contenteditable]";
  const kinds = ["pointerover", "pointerdown", "click", "focusin", "keydown"];
  const wanted = ({ type, key, target, ctrlKey, metaKey, altKey }) => {
    if (!(target instanceof Element)) return false;
    if (type === "keydown" && !ctrlKey && !metaKey && !altKey && ["/", "f", "s"].includes(key) && !target.matches(TYPED_INTO)) return true;
    return target.closest("[data-md-component=search], [for=__search]") !== null;
  };
  const begin = (event) => {
    if (!wanted(event)) return;
    for (const kind of kinds) removeEventListener(kind, begin, true);
    start();
  };
  // A link to a search: the theme opens it.
  if (new URLSearchParams(location.search).has("q")) return start();
  for (const kind of kinds) addEventListener(kind, begin, true);
}
