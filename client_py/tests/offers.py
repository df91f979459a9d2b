"""Networks of numpy that are offered to the server."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from anisoflight import Client
from anisoflight.offering import Question, offer, terms_of
from anisoflight.wire.progress import Bar

Answer = Callable[[Question], Mapping[str, Any]]


def offered(client: Client, name: str, answer: Answer, shape: Sequence[int], **options: Any) -> dict[str, Any]:
    """Offer a network whose terms of the loss a function gives, whichever are asked for."""

    def terms(event: Mapping[str, Any], question: Question) -> Any:
        return terms_of(answer(question), event["terms"], question.g.shape)

    return offer(client, {"name": name, "shape": shape, **options}, terms, Bar(name, "sample", show=False))
