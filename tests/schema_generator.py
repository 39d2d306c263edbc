"""JSON schemas for tests of structured output: drawn over the keywords that docs/server.md lists, and those that
pydantic and LangChain emit for classes as applications write them."""

import random

WORDS = ("name", "age", "city", "tags", "kind", "score", "title", "description", "default", "type", "items", "ok", "note",
         "größe", "a b", 'q"t', "enum")
PATTERNS = ("^[A-Z]{2}-[0-9]{3}$", "[a-f0-9]{8}", "^(red|green|blue)( (dark|light))?$", "^\\d{1,3}%$", "^[^\\s\"]{1,8}$",
            "^a.b\\\\$")
FORMATS = ("date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri")


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.definitions = {}

    def schema(self):
        """One schema, its root an object most of the time."""
        root = self.object(2) if self.random.random() < 0.8 else self.value(2)
        if self.random.random() < 0.3:
            root = {"type": "object", "properties": {"first": root, "more": self.reference()}, "required": ["first"],
                    "additionalProperties": False}
        return {**root, "$defs": self.definitions} if self.definitions else root

    def value(self, depth):
        kinds = [self.string, self.string, self.integer, self.number, self.constant, self.simple, self.alternatives]
        if depth > 0:
            kinds += [self.object, self.object, self.array, self.array, self.all_of, self.one_of]
        return self.random.choice(kinds)(depth - 1)

    def simple(self, _):
        return self.random.choice(({"type": "boolean"}, {"type": "null"}, {"type": ["boolean", "null"]},
                                   {"type": "integer"}, {"type": "number"}))

    def string(self, _):
        drawn = self.random.random()
        if drawn < 0.3:
            return {"type": "string", "pattern": self.random.choice(PATTERNS)}
        if drawn < 0.6:
            return {"type": "string", "format": self.random.choice(FORMATS)}
        low = self.random.randrange(4)
        return {"type": "string", "minLength": low, "maxLength": low + self.random.randrange(12)}

    def integer(self, _):
        low = self.random.randrange(-1000, 1000)
        high = low + self.random.randrange(2000)
        drawn = self.random.random()
        if drawn < 0.2:
            return {"type": "integer", "multipleOf": self.random.randrange(1, 12)}
        if drawn < 0.4:
            return {"type": "integer", "minimum": low, "maximum": low + 500, "multipleOf": self.random.randrange(1, 50)}
        if drawn < 0.6:
            return {"type": "integer", "exclusiveMinimum": low, "exclusiveMaximum": high + 2}
        return {"type": "integer", self.random.choice(("minimum", "exclusiveMinimum")): low, "maximum": high + 1}

    def number(self, _):
        low = round(self.random.uniform(-50, 50), self.random.randrange(4))
        high = round(low + self.random.uniform(0.01, 100), self.random.randrange(2, 5))
        bounds = {self.random.choice(("minimum", "exclusiveMinimum")): low,
                  self.random.choice(("maximum", "exclusiveMaximum")): high}
        if self.random.random() < 0.3:
            bounds.pop(self.random.choice(list(bounds)))
        return {"type": "number", **bounds}

    def constant(self, _):
        values = [True, None, 3, -1.5, "red", "a \"quoted\" word", "größe", [1, "x"], {"k": [False]}]
        if self.random.random() < 0.4:
            return {"const": self.random.choice(values)}
        return {"enum": self.random.sample(values, self.random.randrange(1, 5))}

    def alternatives(self, depth):
        options = [self.value(min(depth, 0)) for _ in range(self.random.randrange(1, 4))]
        return {"anyOf": options, "title": "Choice", "default": None}

    def one_of(self, depth):
        return {"oneOf": [{"type": "object", "properties": {"kind": {"const": kind}, "held": self.value(depth - 1)},
                           "required": ["held"]} for kind in self.random.sample(WORDS[:8], 2)]}

    def all_of(self, depth):
        return {"allOf": [{"type": "object", "properties": {"one": self.value(depth - 1)}, "required": ["one"]},
                          {"properties": {"two": self.value(depth - 1)}}]}

    def array(self, depth):
        low = self.random.randrange(3)
        if self.random.random() < 0.2:
            return {"type": "array", "prefixItems": [self.value(depth), self.value(depth)], "items": False, "minItems": 2}
        return {"type": "array", "items": self.value(depth), "minItems": low, "maxItems": low + self.random.randrange(3)}

    def object(self, depth):
        if self.random.random() < 0.15:
            keys = self.random.choice(({"propertyNames": {"pattern": "^[a-z]{1,6}$"}}, {"propertyNames": {"enum": ["x", "y"]}}))
            return {"type": "object", "additionalProperties": self.value(depth), "maxProperties": 3, **keys}
        names = self.random.sample(WORDS, self.random.randrange(1, 5))
        schema = {"type": "object", "properties": {name: self.value(depth) for name in names},
                  "required": [name for name in names if self.random.random() < 0.6]}
        if self.random.random() < 0.2:
            schema["additionalProperties"] = self.random.choice((False, {"type": "integer"}))
        return schema

    def reference(self):
        """To a list of nodes that may hold each other."""
        self.definitions["node"] = {"type": "object", "properties": {
            "value": {"type": "integer", "minimum": 0, "maximum": 99},
            "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, "required": ["value", "next"]}
        return {"$ref": "#/$defs/node"}


def drawn(count, seed=1):
    return [Generator(seed * 1_000_000 + i).schema() for i in range(count)]


def classes():
    """Classes of pydantic as applications write them."""
    import datetime
    import enum
    import uuid
    from typing import Annotated, Literal, Optional, Union

    from pydantic import BaseModel, Field

    class Colour(enum.Enum):
        RED = "red"
        BLUE = "blue"

    class Address(BaseModel):
        street: Annotated[str, Field(max_length=30)]
        city: str = Field(description="Where it is", max_length=20)
        code: Annotated[str, Field(pattern=r"^\d{5}$")]

    class Person(BaseModel):
        """Somebody."""
        name: Annotated[str, Field(min_length=1, max_length=20)]
        age: int = Field(ge=0, le=150)
        height: Optional[float] = Field(None, gt=0, lt=3)
        born: datetime.date
        seen: Optional[datetime.datetime] = None
        home: Address
        others: list[Address] = Field(default_factory=list, max_length=2)
        favourite: Colour
        mood: Literal["good", "bad"] = "good"

    class Cat(BaseModel):
        kind: Literal["cat"] = "cat"
        lives: int = Field(ge=1, le=9)

    class Dog(BaseModel):
        kind: Literal["dog"] = "dog"
        tricks: list[Literal["sit", "roll"]] = Field(max_length=3)

    class Pet(BaseModel):
        id: uuid.UUID
        animal: Union[Cat, Dog] = Field(discriminator="kind")
        either: Union[int, bool, None]

    class Tree(BaseModel):
        value: int = Field(ge=0, le=9)
        children: list["Tree"] = Field(max_length=2)

    class Table(BaseModel):
        cells: dict[str, int] = Field(max_length=3)
        pair: tuple[int, Annotated[str, Field(max_length=5)]]
        anything: dict[str, bool] = Field(default_factory=dict, max_length=2)

    return Address, Person, Pet, Tree, Table, Colour


def emitted():
    """Schemas of these classes, as pydantic, LangChain and the openai package write them: {name: schema}. Needs them."""
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from openai.lib._pydantic import to_strict_json_schema
    from pydantic import TypeAdapter

    *models, colour = classes()
    address, person, _, tree, _ = models
    schemas = {}
    for model in models:
        schemas[f"pydantic {model.__name__}"] = model.model_json_schema()
        schemas[f"serialized {model.__name__}"] = model.model_json_schema(mode="serialization")
        schemas[f"LangChain {model.__name__}"] = convert_to_openai_tool(model)["function"]["parameters"]
    for model in (address, person, tree):
        schemas[f"openai {model.__name__}"] = to_strict_json_schema(model)
    schemas["adapter"] = TypeAdapter(list[colour]).json_schema() | {"maxItems": 4}
    return schemas
