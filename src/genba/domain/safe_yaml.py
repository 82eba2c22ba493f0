"""YAML that a person writes: no key stands twice, and no few lines stand for billions.

The second of two keys would silently undo the first. `<<` copies what it merges, so names that each merge the one
before several times grow without end. Whatever a text holds, it is plain data, a `YAMLError`, a `ValueError` that says
what is wrong with a value, or a `RecursionError`.
"""

from collections.abc import Iterator
from typing import Any

from genba.domain.convert import MOST_VALUES

_MISFIT = (KeyError, IndexError, AttributeError, TypeError, ArithmeticError)
"""What the library itself raises for a value that does not fit its tag, such as `!!int ""`."""


def load_yaml(text: str, quick: bool = False) -> Any:
    """What a text says, as plain data. The quick parser dies of what is nested too deeply: it is for what is not."""
    import yaml  # noqa: PLC0415  (most runs have no YAML to read, and its import is a fifth of their time)

    class Careful(getattr(yaml, "CSafeLoader", yaml.SafeLoader) if quick else yaml.SafeLoader):  # type: ignore[misc]
        def __init__(self, stream: str) -> None:
            super().__init__(stream)
            self.flat: set[int] = set()
            self.merged = 0

        def flatten_mapping(self, node: Any) -> None:
            if id(node) in self.flat:
                return
            self.flat.add(id(node))
            self.one_of_each(node)  # before the keys of `<<` are among the others
            for each in self.named_by_merge(node):
                self.flatten_mapping(each)
                self.merged += len(each.value)
                if self.merged > MOST_VALUES:
                    raise yaml.constructor.ConstructorError(None, None, "<< merges too many values", node.start_mark)
            super().flatten_mapping(node)

        def named_by_merge(self, node: Any) -> Iterator[Any]:
            for key, value in node.value:
                if key.tag == "tag:yaml.org,2002:merge":
                    listed = value.value if isinstance(value, yaml.SequenceNode) else [value]
                    yield from (each for each in listed if isinstance(each, yaml.MappingNode))

        def one_of_each(self, node: Any) -> None:
            seen = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                    if (key.tag, key.value) in seen:
                        message = f'the key "{key.value[:80]}" stands there twice'
                        raise yaml.composer.ComposerError(None, None, message, key.start_mark)
                    seen.add((key.tag, key.value))

        def construct_object(self, node: Any, deep: bool = False) -> Any:
            try:
                return super().construct_object(node, deep=deep)
            except _MISFIT:
                message = f"a value does not fit its tag {node.tag.rpartition(':')[2][:80]}"
                raise yaml.constructor.ConstructorError(None, None, message, node.start_mark) from None

    try:
        return yaml.load(text, Careful)  # noqa: S506  (a SafeLoader, which makes plain data only)
    except _MISFIT as error:
        raise ValueError(f"a character that cannot be: {error}") from None
