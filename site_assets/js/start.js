/**
 * Loaded first. Python starts while the page is still being read where nothing else is to be shown before its answer
 * (a link that carries inputs) or where everything is at hand (a later visit); else the page finishes first.
 */

import { startEarly } from "./client.js";

const linked = location.search.length > 1 || location.hash.startsWith("#config=");
if (linked || navigator.serviceWorker?.controller) startEarly();
