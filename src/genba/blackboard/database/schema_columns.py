"""What the tables of the blackboard are made of: the kinds of their columns, and one set that all of them belong to."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Integer,
    MetaData,
    Text,
    false,
    text,
)

KEY = BigInteger().with_variant(Integer(), "sqlite")

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def words(column: str, words: Iterable[str]) -> CheckConstraint:
    allowed = ", ".join(f"'{word}'" for word in words)
    return CheckConstraint(f"{column} IN ({allowed})", name=column)


def row_id() -> Column[int]:
    return Column("id", KEY, primary_key=True)


def to(target: str, name: str, required: bool = True) -> Column[Any]:
    return Column(name, ForeignKey(f"{target}.id"), nullable=not required)


def prose(name: str, default: str | None = "") -> Column[str]:
    """A text that is always there; without a default it must be given."""
    return Column(name, Text, nullable=False, server_default=None if default is None else text(f"'{default}'"))


def structured(name: str, default: str) -> Column[str]:
    return Column(name, Text, nullable=False, server_default=text(f"'{default}'"))


def whole(name: str, default: int = 0) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=text(str(default)))


def flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False, server_default=false())


def money(name: str) -> Column[float]:
    return Column(name, Double, nullable=False, server_default=text("0"))


def moment(name: str = "created_at", required: bool = True) -> Column[str]:
    return Column(name, Text, nullable=not required)
