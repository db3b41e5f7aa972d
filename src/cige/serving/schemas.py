"""The bodies of requests and responses, as described in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, GetPydanticSchema, WithJsonSchema, model_validator
from pydantic_core import core_schema

from cige.json_text import JsonObject
from cige.lexicon.user_word import UserWord

# A str of any code points; pydantic's own str rejects lone surrogates, which are valid in JSON and in cige.
_AnyText = GetPydanticSchema(lambda source, handler: core_schema.is_instance_schema(str, cls_repr="str"))
Text = Annotated[str, _AnyText, WithJsonSchema({"type": "string"})]
WordText = Annotated[str, _AnyText, WithJsonSchema({"type": "string", "minLength": 1})]  # checked when it is used
Number = Annotated[int | float, WithJsonSchema({"type": "number"})]  # an int stays one
Label = Annotated[str, Field(min_length=1, max_length=64, examples=["COMPANY"])]
Words = Annotated[
    list["WordIn | WordText"],
    Field(default_factory=list, description="your own words: strings, or objects with label and mode"),
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


def _either(name: str, type_: str, other: str, other_type: str) -> ConfigDict:
    """The JSON schema that one of two fields is given, and the other is not.

    `oneOf` would say so too, but generators of clients make a union of it, whose parts have no other fields.
    """
    is_given = {"properties": {name: {"type": type_}}, "required": [name]}
    other_is_given = {"properties": {other: {"type": other_type}}, "required": [other]}
    rule: Any = {"if": is_given, "then": {"properties": {other: {"type": "null"}}}, "else": other_is_given}
    return ConfigDict(json_schema_extra=rule)


class WordIn(_Strict):
    """One of your own words."""

    model_config = _either("text", "string", "word", "string")

    text: WordText | None = Field(None, description="2 to 64 characters; with the modes force and block, 1 to 64")
    word: WordText | None = Field(
        None, description="the same as text, as in word lists of JSON lines; give one of them"
    )
    label: Label | None = Field(None, description="the type of entity that the word names; null if it is not known")
    mode: Literal["evidence", "type", "force", "block", "block_exact"] = Field(
        "evidence",
        description="evidence: the model decides in context; type: the model decides whether it is an entity, whose "
        "type is the label; force: the word is always tagged with its label; block: neither the word nor anything "
        "inside it is an entity; block_exact: the word itself is never an entity",
    )

    @model_validator(mode="after")
    def _has_one_text(self) -> WordIn:
        if (self.text is None) == (self.word is None):
            raise ValueError("expected either text or word, a string")
        return self

    @property
    def given(self) -> str:
        return self.text if self.text is not None else str(self.word)


class ReadIn(_Strict):
    """The fields of every request with texts."""

    model: str | None = Field(None, description="the name of a model in /v1/models; default: the first one")
    words: Words
    offsets: Literal["code_points", "utf16"] = Field(
        "code_points", description="the unit of start and end: code points (Python) or UTF-16 code units (JavaScript)"
    )
    labels: list[Label] | None = Field(None, description="report only these labels")
    types: Literal["fine", "coarse"] = Field("fine", description="coarse reports, for example, COMPANY as ORG")
    min_score: float = Field(0.0, ge=0.0, le=1.0, description="leave out entities with a lower score")
    nested: bool = Field(
        True, description="false leaves out entities that overlap one with a higher score (models of nested entities)"
    )
    consistent: bool = Field(
        False,
        description="treat each text as a document: if a name was found in one place and missed in another, the text "
        "is processed again with the found names as words",
    )
    deadline_ms: int | None = Field(None, ge=1, description="return 504 after this number of milliseconds")


class EntitiesIn(ReadIn):
    """One text or many."""

    model_config = _either("text", "string", "texts", "array")

    text: Text | None = Field(None, examples=["昨天阿拉善贺兰草宣布了新的计划。"])
    texts: list[Text] | None = Field(None, description="instead of text; one result per text, in order")
    explain: bool = Field(
        False, description="list the words with the most attention per entity, and what changes without them"
    )
    n_words: int = Field(5, ge=0, le=100, description="with explain: the maximum number of words to list per entity")


class LatticeIn(ReadIn):
    """One text whose lattice is requested."""

    text: Text = Field(examples=["昨天阿拉善贺兰草宣布了新的计划。"])
    n_words: int = Field(5, ge=0, le=100, description="the maximum number of words to list per entity")
    svg_width: int | None = Field(None, ge=160, le=4000, description="draw the lattice with this width in pixels")


class AddIn(_Strict):
    """Words to add to the shared lexicon, all or none."""

    words: Words
    version: int | None = Field(None, description="add them only if the lexicon has this version; otherwise 409")


class RemoveIn(_Strict):
    """Words to remove from the shared lexicon, all or none."""

    words: list[WordText]
    version: int | None = Field(None, description="remove them only if the lexicon has this version; otherwise 409")


class EntityOut(BaseModel):
    """An entity: `text[start:end]` of the request, in the unit of `offsets`."""

    start: int
    end: int
    label: str
    text: str
    score: float = Field(ge=0, le=1)
    forced: bool = Field(False, description="whether the entity is a word with mode force")
    parts: list[list[int]] = Field([], description="the [start, end] of the parts of an entity with gaps")


class LatticeWordOut(BaseModel):
    """A word of the lattice."""

    start: int
    end: int
    text: str
    is_user: bool
    label: str | None = None
    mode: str | None = None


class AttendedWordOut(LatticeWordOut):
    """A word that an entity pays attention to."""

    share: float = Field(description="share of this word in the attention of the entity to words, 0..1")


class ExplainedEntityOut(EntityOut):
    """An entity with the words that it pays attention to."""

    on_words: float | None = Field(None, description="share of words in the attention of the entity, 0..1")
    words: list[AttendedWordOut] | None = None


class ResultOut(BaseModel):
    """The result for one text; the fields after `entities` are present if `explain` was set."""

    entities: list[ExplainedEntityOut]
    words: list[LatticeWordOut] | None = None
    n_dropped: int | None = Field(
        None,
        description="number of words that exceed the node budget of the lattice and were omitted, not counting words "
        "that consist of punctuation only",
    )
    removals: list[JsonObject] | None = Field(None, description="what changes if a word is removed")
    n_tried: int | None = Field(None, description="number of words that were removed to see what changes")


class HeadOut(BaseModel):
    """The fields of all responses with offsets."""

    model: str = Field(description="the name of the model that was used")
    offsets: Literal["code_points", "utf16"]
    lexicon_version: int = Field(description="version of the shared lexicon that was used")


class EntitiesOut(HeadOut):
    """One result per text, in order."""

    results: list[ResultOut]


class LatticeOut(HeadOut, ResultOut):
    """The lattice of a text, its entities and the words that they pay attention to."""

    svg: str | None = Field(None, description="the drawing, if svg_width was given")


class WordOut(BaseModel):
    """A word of the shared lexicon."""

    text: Text
    label: Text | None
    mode: str


class LexiconOut(BaseModel):
    """The words that users added to the lexicon, and those that they removed."""

    version: int = Field(description="increases by one with every change")
    n_base: int = Field(description="number of words in the lexicon of the first model")
    n_words: int = Field(description="number of user words on all pages")
    words: list[WordOut]
    removed: list[Text]


class VersionOut(BaseModel):
    """The lexicon after a change."""

    version: int
    n_words: int


class ServedModelOut(BaseModel):
    """A model that requests can name."""

    name: Text
    n_base: int = Field(description="number of words in the lexicon of the model")
    labels: list[Text]
    silent_labels: list[Text] = Field(description="labels that are reported only if the request lists them")
    word_labels: list[Text] = Field(description="labels of user words that the model was trained on")


class ModelsOut(BaseModel):
    """The models of this server; the first one is the default."""

    models: list[ServedModelOut]


class ModelOut(ServedModelOut):
    """The default model."""

    cige_version: str
    limits: dict[str, Number]


class HealthOut(BaseModel):
    """The process responds."""

    status: Literal["ok"]


class ReadyOut(BaseModel):
    """Requests are accepted."""

    status: Literal["ready"]
    waiting: int = Field(description="number of requests that are waiting or being processed")


class ErrorFacts(BaseModel):
    """What is wrong, and what to do."""

    code: str = Field(description="the kind of error, for programs", examples=["too_many_texts"])
    message: str = Field(description="what was given, what was expected and what to do")
    params: dict[str, str | int | float] = Field(description="the figures and names in the message")


class ErrorOut(BaseModel):
    """The response to a request that was refused."""

    error: ErrorFacts


Responses: TypeAlias = dict[int | str, dict[str, Any]]  # of FastAPI: status -> description and model


def _errors(descriptions: dict[int, str]) -> Responses:
    return {status: {"model": ErrorOut, "description": what} for status, what in descriptions.items()}


ERRORS = _errors(
    {
        400: "the body is not JSON in UTF-8, or is damaged gzip",
        401: "the token is missing or wrong",
        408: "the body arrived too slowly",
        413: "the request exceeds the limits for one request",
        415: "the body has a Content-Encoding other than gzip",
        421: "the server does not answer to this Host",
        422: "the request is invalid",
    }
)
WAIT_ERRORS = ERRORS | _errors(
    {
        429: "too many requests; try again after Retry-After seconds",
        503: "the server is stopping",
        504: "the deadline has passed",
    }
)
CHANGE_ERRORS = ERRORS | _errors(
    {409: "the lexicon has another version, or is full", 503: "the lexicon cannot be written"}
)


def user_words(words: list[WordIn | str]) -> list[UserWord]:
    """The words of a request, unchecked."""
    return [UserWord(word) if isinstance(word, str) else UserWord(word.given, word.label, word.mode) for word in words]
