"""Generate docs/settings.md from plyzero/settings.py and plyzero/run/configuration.py: python docs/make_settings.py."""

from pathlib import Path

from pydantic import BaseModel

from plyzero.run.configuration import PRESETS
from plyzero.settings import Settings

PAGE = Path(__file__).with_name("settings.md")

HEAD = """# Settings

All settings, with their defaults and presets. They come from five sources, of which each overrides those before it: the
defaults, the preset, `run.toml` in the run directory, the environment, and `-o`:

```sh
plyzero train connect-four --run runs/c4 --preset standard -o selfplay.simulations=128 -o network.blocks=6
PLYZERO_SELFPLAY__SIMULATIONS=128 plyzero selfplay --run runs/c4
```

A new run writes its settings to `run.toml`, where they can be edited while no process of the run is running. `none`
means the default that is described; `run.toml` leaves out such settings. This page is generated from
`plyzero/settings.py`.
"""

PRESETS_HEAD = """## Presets

The table shows the settings that each preset changes; `quick` is the default. When a run is created, long games, many
legal moves or a large board raise some settings further; `plyzero check` shows which. Rules in plain Python lower
`selfplay.parallel_games`.
"""


def page() -> str:
    """Return the content of docs/settings.md."""
    parts = [HEAD]
    for section, field in Settings.model_fields.items():
        model = field.annotation
        assert isinstance(model, type)
        assert issubclass(model, BaseModel)
        parts.append(f"## `{section}`: {(model.__doc__ or '').strip().rstrip('.')}\n")
        rows = ["| setting and default | meaning |", "|---|---|"]
        for name, setting in model.model_fields.items():
            meaning = " ".join((setting.description or "").split()).replace("|", "\\|")
            rows.append(f"| `{section}.{name}={_text(setting.default)}` | {meaning} |")
        parts.append("\n".join(rows) + "\n")
    parts.append(PRESETS_HEAD)
    names = sorted({f"{section}.{key}" for preset in PRESETS.values() for section in preset for key in preset[section]})
    rows = [f"| setting | {' | '.join(PRESETS)} |", "|---|" + "---|" * len(PRESETS)]
    for name in names:
        section, _, key = name.partition(".")
        values = [preset.get(section, {}).get(key) for preset in PRESETS.values()]
        rows.append(f"| `{name}` | {' | '.join('' if value is None else _text(value) for value in values)} |")
    parts.append("\n".join(rows) + "\n")
    return "\n".join(parts)


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else f"{value}"


if __name__ == "__main__":
    PAGE.write_text(page())
