"""Models that fail in one way each, and what a compressor made of the session then."""

from __future__ import annotations

from dataclasses import dataclass, field

from eval_core.base.messages import content_text
from eval_core.domain.call import Completion, Failed, ModelCall, ReplyCall, Usage
from eval_core.domain.model_failure import FailureReaction, ModelFailure
from eval_core.models.offline import OFFLINE_MODEL, OfflineModel
from eval_core.sandbox.classify import KEPT_AT_MOST
from eval_core.sandbox.validate import StepResult

_CUT_OFF = "The user asked for help with"
_SAYS_NOTHING = ("", "none", "null", "{}", "[]")
_REFUSAL = "I'm sorry, but I can't help with that."


@dataclass
class FailingModel:
    """A model that fails in one way; where that is over, or cannot be, the stand-in answers."""

    failure: ModelFailure
    stand_in: OfflineModel
    failed: int = field(default=0, init=False)
    """How many calls it failed."""
    failed_last: bool = field(default=False, init=False)
    """Whether it failed the last call, so that the compressor got no summary."""

    async def complete(self, call: ModelCall) -> Completion | Failed:
        """Fail, or answer as the stand-in does."""
        reply = self._reply(call)
        self.failed_last = reply is not None
        if reply is None:
            return await self.stand_in.complete(call)
        self.failed += 1
        return reply

    def _reply(self, call: ModelCall) -> Completion | Failed | None:
        match self.failure:
            case ModelFailure.DOWN:
                return Failed("server", retryable=False, message="the model is down for this check")
            case ModelFailure.BUSY_ONCE:
                busy = Failed("rate_limit", retryable=True, message="the model is busy once for this check")
                return None if self.failed else busy
            case ModelFailure.EMPTY:
                return Completion("", Usage(), OFFLINE_MODEL, 0.0)
            case ModelFailure.CUT_OFF:
                return Failed("truncated", retryable=False, message="cut off for this check", text=_CUT_OFF)
            case ModelFailure.TOOL_CALL:
                return self._tool_call(call)
            case ModelFailure.REFUSES:
                return Completion(_REFUSAL, Usage(), OFFLINE_MODEL, 0.0)

    def _tool_call(self, call: ModelCall) -> Completion | None:
        """Call an offered tool once; where its result says nothing, say nothing either, as models were seen to do."""
        tools = call.params.get("tools")
        if self.failed:
            last = content_text(call.messages[-1]).strip().lower()
            return Completion("", Usage(), OFFLINE_MODEL, 0.0) if last in _SAYS_NOTHING else None
        if not tools:
            return None
        asked = ReplyCall("call_1", tools[0]["function"]["name"], "{}")
        return Completion("", Usage(), OFFLINE_MODEL, 0.0, calls=(asked,))

    def reaction(self, result: StepResult, before: int, after: int) -> FailureReaction:
        """Tell what a compressor made of a session whose `before` tokens became `after`."""
        if after > KEPT_AT_MOST * before:
            return FailureReaction.LEFT_ALONE
        if result.degraded:
            return FailureReaction.FELL_BACK
        return FailureReaction.DESTROYED if self.failed_last else FailureReaction.RECOVERED
