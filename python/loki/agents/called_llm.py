"""What the models that are called over the wire share: a call, blocking or not."""

from __future__ import annotations

from loki.action.llm_protocol import Answer, Request
from loki.agents import persistent_client
from loki.agents.model_call import Draft, perform
from loki.agents.model_error import Service
from loki.base.time import Clock


class CalledLLM:
    """A model over the wire; whoever is one says in `_ask` how it is asked."""

    _service: Service
    _clock: Clock

    def complete(self, request: Request) -> Answer:
        """The model's answer.

        Raises:
            LLMError: there is none; ``kind`` says why.
        """
        return persistent_client.run(self.acomplete(request))

    async def acomplete(self, request: Request) -> Answer:
        """The same without blocking the event loop."""
        return await perform(
            lambda draft: self._ask(request, draft), self._service, request, self._clock
        )

    async def _ask(self, request: Request, draft: Draft) -> None:
        raise NotImplementedError
