"""Write docs/settings.md from the settings themselves: python docs/make_settings.py."""

from pathlib import Path

from pydantic import BaseModel

from plyzero.run.presets import PRESETS
from plyzero.settings import Settings

PAGE = Path(__file__).with_name("settings.md")

HEAD = """# Settings

Each layer goes over the one before: defaults, then the preset, `run.toml` in the run directory, the environment, `-o`:

```sh
plyzero train connect-four --run runs/c4 --preset standard -o selfplay.simulations=128 -o network.blocks=6
PLYZERO_SELFPLAY__SIMULATIONS=128 plyzero selfplay --run runs/c4
```

A new run writes them into its `run.toml`, where they may be edited while nothing runs. An unknown name is an error that
tells the nearest one. `none` stands for the default that is described; run.toml leaves such settings out. This page is
made from `plyzero/settings.py`.
"""


def page() -> str:
    """Return docs/settings.md."""
    parts = [HEAD]
    for section, field in Settings.model_fields.items():
        concern = field.annotation
        assert isinstance(concern, type)
        assert issubclass(concern, BaseModel)
        parts.append(f"## `{section}`: {(concern.__doc__ or '').strip().rstrip('.')}\n")
        rows = ["| setting | default | meaning |", "|---|---|---|"]
        for name, setting in concern.model_fields.items():
            meaning = " ".join((setting.description or "").split()).replace("|", "\\|")
            rows.append(f"| `{section}.{name}` | {_shown(setting.default)} | {meaning} |")
        parts.append("\n".join(rows) + "\n")
    parts.append(
        "## Presets\n\nWhat each changes; `quick` is the default. Long games, many legal moves or a large board get "
        "more than\nthat when a run is made; `plyzero check` says what.\n"
    )
    names = sorted({f"{section}.{key}" for preset in PRESETS.values() for section in preset for key in preset[section]})
    rows = [f"| setting | {' | '.join(PRESETS)} |", "|---|" + "---|" * len(PRESETS)]
    for name in names:
        section, _, key = name.partition(".")
        values = [preset.get(section, {}).get(key) for preset in PRESETS.values()]
        rows.append(f"| `{name}` | {' | '.join('' if value is None else _shown(value) for value in values)} |")
    parts.append("\n".join(rows) + "\n")
    return "\n".join(parts)


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else f"{value}"


if __name__ == "__main__":
    PAGE.write_text(page())
