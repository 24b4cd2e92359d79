/**
 * The service worker. A release is kept whole: pages from the network while there is one, else all from one release.
 *
 * Files in folders named after their content never change and are served from the cache; everything else is asked of
 * the network first and is never written into a release that it does not belong to.
 */

const RELEASE = "__RELEASE__";
/** @type {Record<string, string>} address relative to the site: sha256 */
const FILES = "__FILES__";
const CACHE = `enginemem-${RELEASE}`;
const SEALED = /\/assets\/(?:py|app)\/[0-9a-f]{16}\/|\.[0-9a-f]{8}\.min\.(?:js|css)$/;
const AT_ONCE = 6;

/** @param {string} path */
const addressOf = (path) => new URL(path, self.registration.scope).href;

async function sha256(response) {
  const digest = await crypto.subtle.digest("SHA-256", await response.arrayBuffer());
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Put one file of this release into its cache: from an older release when it has not changed, else from the network. */
async function keep(cache, path) {
  const address = addressOf(path);
  const sealed = SEALED.test(address);
  const known = sealed ? await caches.match(address) : undefined;
  const response = known ?? (await fetch(address, { cache: sealed ? "default" : "reload" }));
  if (!response.ok) throw new Error(`${path}: HTTP status ${response.status}`);
  // Names without a hash can change under our hands: a file of another release must not get into this one.
  if (!sealed && (await sha256(response.clone())) !== FILES[path]) throw new Error(`${path} is of another release`);
  await cache.put(address, response);
}

async function install() {
  const cache = await caches.open(CACHE);
  const paths = Object.keys(FILES);
  try {
    const lanes = Array.from({ length: AT_ONCE }, async () => {
      while (paths.length) await keep(cache, paths.pop());
    });
    await Promise.all(lanes);
  } catch (error) {
    await caches.delete(CACHE);
    throw error;
  }
}

async function forgetOtherReleases() {
  const names = await caches.keys();
  await Promise.all(names.filter((name) => name.startsWith("enginemem-") && name !== CACHE).map((name) => caches.delete(name)));
}

async function fromCacheFirst(request) {
  const kept = await caches.match(request.url, { ignoreVary: true });
  if (kept) return kept;
  const response = await fetch(request);
  if (response.ok && response.status === 200) {
    const cache = await caches.open(CACHE);
    await cache.put(request.url, response.clone());
  }
  return response;
}

async function fromNetworkFirst({ request, preloadResponse }) {
  try {
    return (await preloadResponse) ?? (await fetch(request));
  } catch (error) {
    const { origin, pathname } = new URL(request.url);
    const cache = await caches.open(CACHE);
    const kept = await cache.match(origin + pathname.replace(/index\.html$/, ""), { ignoreVary: true });
    if (kept) return kept;
    throw error;
  }
}

/**
 * Where the browser can, it takes sealed files from the cache itself and asks for pages while this script starts.
 * @param {ExtendableEvent & {addRoutes?: (rules: object[]) => Promise<void>}} event
 */
function takeShortcuts(event) {
  const { pathname } = new URL(self.registration.scope);
  const sealed = ["py", "app", "javascripts", "stylesheets"].map((folder) => ({
    condition: { urlPattern: new URLPattern({ pathname: `${pathname}assets/${folder}/*` }), requestMethod: "GET" },
    source: { cacheName: CACHE },
  }));
  return event.addRoutes(sealed);
}

self.addEventListener("install", (event) => {
  if (event.addRoutes) event.waitUntil(takeShortcuts(event).catch(() => {}));
  event.waitUntil(install());
});
self.addEventListener("activate", (event) => {
  event.waitUntil(forgetOtherReleases());
  event.waitUntil(self.registration.navigationPreload?.enable());
});
self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !request.url.startsWith(self.registration.scope)) return;
  event.respondWith(SEALED.test(request.url) ? fromCacheFirst(request) : fromNetworkFirst(event));
});
