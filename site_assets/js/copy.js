/** Copying and saving texts that Python made. */

/**
 * Put a text on the clipboard.
 * @param {string} text
 * @returns {Promise<boolean>} whether it is there
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

/** The old way, for pages that are not served over TLS. @param {string} text */
function copySelected(text) {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "em-hidden";
  document.body.append(area);
  const focused = document.activeElement;
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  focused?.focus?.();
  return done;
}

/**
 * Save a text as a file.
 * @param {string} name
 * @param {string} type media type
 * @param {string} text
 */
export function saveText(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Every button with `data-copy` copies the text of the element that it names. */
export function watchCopyButtons() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (!button) return;
    const done = await copyText(document.getElementById(button.dataset.copy).textContent);
    flash(button, done ? "Copied" : "Not copied");
  });
}

/**
 * Say on the button itself what happened, for a moment and without changing its width.
 * @param {HTMLElement} button
 * @param {string} said
 */
export function flash(button, said) {
  button.dataset.said = said;
  const say = document.getElementById("em-said");
  if (say) say.textContent = said;
  setTimeout(() => {
    delete button.dataset.said;
    if (say && say.textContent === said) say.textContent = "";
  }, 2000);
}
