/** What every page but the calculator needs: sortable tables and copy buttons. */

import "./tables.js";
import { watchCopyButtons } from "./copy.js";

watchCopyButtons();
