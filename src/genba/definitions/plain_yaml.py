"""YAML in which no key stands twice: the second would silently undo the first."""

from typing import Any


def load_yaml(text: str) -> Any:
    """What a text says, as plain data."""
    import yaml  # noqa: PLC0415  (most runs have no YAML to read, and its import is a fifth of their time)

    class OneOfEach(yaml.SafeLoader):
        def compose_mapping_node(self, anchor: Any) -> Any:
            # Here, and not where values are made: by then the keys of `<<` are among the others.
            node = super().compose_mapping_node(anchor)
            seen = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                    if (key.tag, key.value) in seen:
                        told = f'the key "{key.value[:80]}" stands there twice'
                        raise yaml.composer.ComposerError(None, None, told, key.start_mark)
                    seen.add((key.tag, key.value))
            return node

    return yaml.load(text, OneOfEach)  # noqa: S506  (a SafeLoader, which makes plain data only)
