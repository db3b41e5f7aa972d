"""The server against its own OpenAPI document: each request that schemathesis makes is answered as it says."""

import pytest
from hypothesis import HealthCheck, given, settings

import cige
from cige.serving.app import create_app
from cige.serving.settings import Limits, Settings

schemathesis = pytest.importorskip("schemathesis")
jsonschema = pytest.importorskip("jsonschema")
asgi = pytest.importorskip("schemathesis.python.asgi")
from schemathesis.specs.openapi.checks import positive_data_acceptance  # noqa: E402

# A request that violates the schema may be refused for its size first: 413.
REFUSALS = [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429, "5xx"]
CONFIG = schemathesis.Config.from_dict({"checks": {"negative_data_rejection": {"expected-statuses": REFUSALS}}})


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """An app whose lexicon is in a file and may be changed, and a client that reaches it within this process."""
    folder = tmp_path_factory.mktemp("served")
    limits = Limits(body_bytes=100_000, texts=8, words=8, explained_chars=400)
    app = create_app(cige.load(), Settings(lexicon_file=str(folder / "words.json"), limits=limits))
    with asgi.get_client(app) as client:
        yield schemathesis.openapi.from_asgi("/openapi.json", app, config=CONFIG), client


POSTS = ["/v1/entities", "/v1/lattice", "/v1/lexicon", "/v1/lexicon/remove"]
GETS = ["/v1/lexicon", "/v1/model", "/v1/models", "/healthz", "/readyz", "/metrics"]
OPERATIONS = [*(f"POST {path}" for path in POSTS), *(f"GET {path}" for path in GETS)]
# A word of one character, a label that the model does not have: no schema says that they are refused.
MORE_THAN_A_SCHEMA_SAYS = [positive_data_acceptance]
BOTH = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]


def test_every_operation_is_tried(served):
    assert sorted(found.ok().label for found in served[0].get_all_operations()) == sorted(OPERATIONS)


def test_generators_of_clients_find_the_fields_of_each_body(served):
    """A schema with `oneOf` beside its fields is a union for them, whose parts have none (openapi-python-client)."""
    schemas = served[0].raw_schema["components"]["schemas"]
    assert not [name for name, schema in schemas.items() if {"oneOf", "anyOf", "allOf"} & schema.keys()]


@pytest.mark.parametrize(
    ("body", "is_valid"),
    [
        ({"text": "a"}, True),
        ({"texts": ["a"]}, True),
        ({"text": "a", "texts": None}, True),
        ({"text": None, "texts": ["a"]}, True),
        ({"text": "a", "texts": ["a"]}, False),
        ({"text": None}, False),
        ({}, False),
        ({"text": "a", "words": [{"text": "中国", "word": None}, {"word": "中国"}]}, True),
        ({"text": "a", "words": [{"text": "中国", "word": "中国"}]}, False),
        ({"text": "a", "words": [{"label": "LOC"}]}, False),
    ],
)
def test_the_document_says_which_of_two_fields_is_given(served, body, is_valid):
    document, client = served[0].raw_schema, served[1]
    whole = {"$ref": "#/components/schemas/EntitiesIn", "components": document["components"]}
    assert jsonschema.Draft202012Validator(whole).is_valid(body) == is_valid
    assert client.post("/v1/entities", json=body).status_code == (200 if is_valid else 422)


@pytest.mark.parametrize("mode", BOTH, ids=lambda mode: mode.value)
@pytest.mark.parametrize("name", OPERATIONS)
def test_answers_are_as_the_document_says(served, name, mode):
    schema, client = served
    method, path = name.split()
    operation = schema[path][method]
    if mode is BOTH[1] and method == "GET" and path != "/v1/lexicon":
        pytest.skip("takes nothing that could be wrong")

    @settings(
        max_examples=15,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def test(case):
        case.call_and_validate(session=client, excluded_checks=MORE_THAN_A_SCHEMA_SAYS)

    test()
