"""What the form offers around the model: the presets with what they are searched by, and a configuration of one's own."""

from __future__ import annotations

from enginemem.architecture import Architecture, load_model, model_ids
from enginemem.configuration import MOST_TEXT
from enginemem.render.markup import escape


def model_options(default: str) -> str:
    """The presets as options of a select, by family; each holds the hub ids and the size that a search looks at."""
    groups: dict[str, list[str]] = {}
    for model_id in model_ids():
        model = load_model(model_id)
        groups.setdefault(model.family, []).append(_option(model, default))
    return "".join(
        [f'<optgroup label="{escape(family)}">{"".join(items)}</optgroup>' for family, items in groups.items()]
    )


def _option(model: Architecture, default: str) -> str:
    """One preset. A search also looks at its name, its id and its family, which stand in the select anyway."""
    selected = " selected" if model.id == default else ""
    hub = " ".join([model.hub_id, *model.hub_aliases])
    return (
        f'<option value="{escape(model.id)}" data-hub="{escape(hub)}" data-size="{model.parameters}"{selected}>'
        f"{escape(model.name)}</option>"
    )


def model_search(control: str) -> str:
    """The search box above the select `control`; hidden until the page's script narrows by it."""
    return (
        '<div class="em-field em-wide em-model-find" hidden><label for="em-model-find">Find a model</label>'
        f'<div class="em-control"><input type="search" id="em-model-find" aria-controls="{control}" '
        'aria-describedby="em-model-find-help" autocomplete="off" autocapitalize="off" spellcheck="false">'
        '<span class="em-auto" id="em-model-find-said" role="status"></span></div>'
        '<p class="em-help" id="em-model-find-help">Family, hub id or size: 70B, &lt;10B, &gt;200B. '
        "Enter takes the first.</p></div>"
    )


def own_config() -> str:
    """The boxes for a `config.json` of one's own, the place of the verdict on it, and the way back to a preset.

    The boxes come into the page when their fold opens: the browser looks through every field that a page has.
    """
    return (
        '<div class="em-wide em-config"><details class="em-fold" id="em-config" hidden>'
        "<summary>Use your own config.json</summary>"
        '<template><p class="em-small" id="em-config-help">Paste it, drop it here or choose the file. It is read in this '
        "browser. A link "
        "carries what was read of it behind its #, which no server sees.</p>"
        '<label for="em-config-text">config.json</label>'
        f'<textarea id="em-config-text" rows="5" spellcheck="false" autocomplete="off" data-most="{MOST_TEXT}" '
        'aria-describedby="em-config-help em-config-said"></textarea>'
        '<label for="em-config-quant">hf_quant_config.json, where the checkpoint has one</label>'
        f'<textarea id="em-config-quant" rows="2" spellcheck="false" autocomplete="off" data-most="{MOST_TEXT}" '
        'aria-describedby="em-config-said"></textarea>'
        '<label for="em-config-file">Files</label>'
        '<input type="file" id="em-config-file" accept=".json,application/json" multiple>'
        '<p class="em-error" id="em-config-said" role="alert" '
        f'data-long="A file has more than {MOST_TEXT:,} characters, the most that is read." '
        'data-unreadable="A file could not be read as text."></p></template></details>'
        '<div class="em-config-verdict" data-region="config" id="em-config-verdict" role="status"></div>'
        '<p class="em-small" id="em-config-note"></p>'
        '<p><button type="button" class="em-button" id="em-config-back" hidden>Back to the preset</button></p></div>'
    )
