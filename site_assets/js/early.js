// Runs before the first paint: a link that carries inputs must not show the defaults' figures as its own, and what the
// page needs to become live is asked for at once there, and where it is at hand. Else figures are painted first.
{
  const linked = location.search.length > 1 || location.hash.startsWith("#config=");
  if (linked) {
    document.documentElement.dataset.em = "pending";
    document.documentElement.dataset.emDetails = "pending";
  }
  const put = (id) => {
    const content = document.importNode(document.getElementById(id).content, true);
    // The theme's script first: what the calculator starts would only slow it down.
    for (const script of content.querySelectorAll("script:not([async])")) script.async = false;
    document.head.append(content);
  };
  const atOnce = linked || document.hidden || Boolean(navigator.serviceWorker?.controller);
  if (atOnce) put("em-hints");
  document.addEventListener("DOMContentLoaded", () => {
    if (atOnce) return put("em-scripts");
    return requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => {
      put("em-scripts");
      setTimeout(() => put("em-hints"));
    })));
  });
}
