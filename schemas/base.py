"""What every document of ours is made of."""

from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictFloat, StrictInt, StrictStr

# A number keeps how it was written: 4 and 4.0 are the same value but not the same text.
Number: TypeAlias = StrictInt | Annotated[StrictFloat, Field(allow_inf_nan=False)]

# 1 and "1" are different cases.
CaseId: TypeAlias = StrictInt | StrictStr


class Word(BaseModel):
    """A frozen value; unknown fields are a mistake of ours."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Node(Word):
    """A value that may have been a JSON object in somebody's file.

    `keys` are the object's keys in the order found, as the file spells them; a key that is not listed was absent.
    Empty for what we made ourselves. `nulls` are those of them that were null: None alone could not tell a null list
    from an empty one. `extra` holds the keys we have no word for, and values we could not use, untouched.
    """

    keys: tuple[str, ...] = ()
    nulls: tuple[str, ...] = ()
    extra: dict[str, JsonValue] = Field(default_factory=dict)
