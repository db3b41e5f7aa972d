"""The bodies of requests and responses, as described in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import core_schema

from cige.lexicon.user_word import UserWord


class _AnyText:
    """A str of any code points; pydantic's own str rejects lone surrogates, which are valid in JSON and in cige."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.is_instance_schema(str, cls_repr="str")

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        return {"type": "string"}


Text = Annotated[str, _AnyText]
Label = Annotated[str, Field(min_length=1, max_length=64, examples=["COMPANY"])]
Words = Annotated[
    list["WordIn | Text"],
    Field(default_factory=list, description="words of your own: strings, or objects with label and mode"),
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class WordIn(_Strict):
    """A word of your own."""

    text: Text = Field(description="2 to 64 characters; one is enough for the modes force and block")
    label: Label | None = Field(None, description="the type of what it names; null leaves that open")
    mode: Literal["evidence", "force", "block"] = Field(
        "evidence",
        description="evidence: the model weighs the word; force: it is always tagged with its label; block: it is "
        "never an entity",
    )


class ReadIn(_Strict):
    """What every request that reads text may say."""

    model: str | None = Field(None, description="the name of the model to read with, as /v1/models lists it; the first")
    words: Words
    offsets: Literal["code_points", "utf16"] = Field(
        "code_points", description="the unit of start and end: code points (Python) or UTF-16 code units (JavaScript)"
    )
    labels: list[Label] | None = Field(None, description="report only these labels")
    types: Literal["fine", "coarse"] = Field("fine", description="coarse reports COMPANY as ORG and the like")
    min_score: float = Field(0.0, ge=0.0, le=1.0, description="leave out entities with a lower score", strict=False)
    consistent: bool = Field(
        False,
        description="take each text for a document: where a name was found in one place and not in another, the text "
        "is read again with the names found as words",
    )
    deadline_ms: int | None = Field(None, ge=1, description="answer with 504 after so many milliseconds")


class EntitiesIn(ReadIn):
    """One text or many."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"properties": {"text": {"type": "string"}}, "required": ["text"]},
                {"properties": {"texts": {"type": "array"}}, "required": ["texts"]},
            ]
        }
    )

    text: Text | None = Field(None, examples=["昨天阿拉善贺兰草宣布了新的计划。"])
    texts: list[Text] | None = Field(None, description="in place of text; one result for each, in order")
    explain: bool = Field(False, description="list the words that each entity rests on, and what changes without them")
    n_words: int = Field(5, ge=0, le=100, description="with explain: how many words to list for each entity")


class LatticeIn(ReadIn):
    """One text whose lattice is asked for."""

    text: Text = Field(examples=["昨天阿拉善贺兰草宣布了新的计划。"])
    n_words: int = Field(5, ge=0, le=100, description="how many words to list for each entity")
    svg_width: int | None = Field(None, ge=160, le=4000, description="draw the lattice, this many pixels wide")


class AddIn(_Strict):
    """Words to add to the shared lexicon, all or none."""

    words: Words
    version: int | None = Field(None, description="add only if this is the version of the lexicon; else 409")


class RemoveIn(_Strict):
    """Words to remove from the shared lexicon, all or none."""

    words: list[Text]
    version: int | None = Field(None, description="remove only if this is the version of the lexicon; else 409")


class EntityOut(BaseModel):
    """An entity: `text[start:end]` of the request, in the unit of `offsets`."""

    start: int
    end: int
    label: str
    text: str
    score: float = Field(ge=0, le=1)
    forced: bool = Field(False, description="a word with mode force decided it")


class LatticeWordOut(BaseModel):
    """A word of the lattice."""

    start: int
    end: int
    text: str
    is_user: bool
    label: str | None = None
    mode: str | None = None


class AttendedWordOut(LatticeWordOut):
    """A word that an entity rests on."""

    share: float = Field(description="its share of the attention that the entity pays to words, 0..1")


class ExplainedEntityOut(EntityOut):
    """An entity with the words that it rests on."""

    on_words: float | None = Field(None, description="share of the attention that goes to words, 0..1")
    words: list[AttendedWordOut] | None = None


class ResultOut(BaseModel):
    """What was found in one text; the fields after `entities` are there if `explain` was asked for."""

    entities: list[ExplainedEntityOut]
    words: list[LatticeWordOut] | None = None
    n_dropped: int | None = Field(
        None,
        description="words over the node budget of the lattice, which were not read; those of punctuation alone do not "
        "count",
    )
    removals: list[dict[str, Any]] | None = Field(None, description="what changes without a word")
    n_tried: int | None = Field(None, description="words that were removed to see what changes")


class HeadOut(BaseModel):
    """What all responses with offsets say."""

    model: str = Field(description="the name of the model that read the texts")
    offsets: Literal["code_points", "utf16"]
    lexicon_version: int = Field(description="version of the shared lexicon that was read")


class EntitiesOut(HeadOut):
    """A result for each text, in order."""

    results: list[ResultOut]


class LatticeOut(HeadOut, ResultOut):
    """The lattice of a text, its entities and the words they rest on."""

    svg: str | None = Field(None, description="the drawing, if svg_width was given")


class WordOut(BaseModel):
    """A word of the shared lexicon."""

    text: str
    label: str | None
    mode: str


class LexiconOut(BaseModel):
    """The words that users added to the lexicon, and those that they removed."""

    version: int = Field(description="one more with every change")
    n_base: int = Field(description="words of the first model's own lexicon")
    n_words: int = Field(description="words of users, all pages together")
    words: list[WordOut]
    removed: list[str]


class VersionOut(BaseModel):
    """The lexicon after a change."""

    version: int
    n_words: int


class ServedModelOut(BaseModel):
    """A model that requests can name."""

    name: str
    n_base: int = Field(description="words of its own lexicon")
    labels: list[str]
    silent_labels: list[str] = Field(description="labels that are reported only if they are named")
    word_labels: list[str] = Field(description="labels of words that the model was trained to read")


class ModelsOut(BaseModel):
    """The models of this server; the first answers requests that name none."""

    models: list[ServedModelOut]


class ModelOut(ServedModelOut):
    """The model that answers requests that name none."""

    cige_version: str
    limits: dict[str, float]


class HealthOut(BaseModel):
    """The process answers."""

    status: Literal["ok"]


class ReadyOut(BaseModel):
    """Requests are taken."""

    status: Literal["ready"]
    waiting: int = Field(description="requests that wait or are being read")


class ErrorOut(BaseModel):
    """What is wrong, and what to do."""

    error: str


def user_words(words: list[WordIn | str]) -> list[UserWord]:
    """The words of a request, unchecked."""
    return [UserWord(word) if isinstance(word, str) else UserWord(word.text, word.label, word.mode) for word in words]
