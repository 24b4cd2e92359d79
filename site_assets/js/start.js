/** Loaded first and at once: Python starts while the page is still being read. */

import { startEarly } from "./client.js";

startEarly();
