"""inspect_ai: OpenAI dicts to its chat messages and back, around the strategy's own `compact`."""

from inspect_ai.model import GenerateConfig, get_model, messages_from_openai, messages_to_openai


class Compaction:
    """The strategy under test, the model it asks, and the summaries it wrote."""

    def __init__(self, strategy, model):
        self.strategy = strategy
        self.model = model
        self.summaries = set()


def create(spec):
    """Build the strategy and a model at the given address."""
    model = get_model(
        f"openai-api/gateway/{spec['model']}",
        base_url=spec["base_url"],
        api_key=spec["api_key"],
        config=GenerateConfig(max_retries=0),
        memoize=False,
    )
    return Compaction(spec["target"](**spec["init"]), model)


async def compress(compaction, messages, call):
    """Compact the session; its own earlier summary is marked again, as it would be inside inspect_ai."""
    history = await messages_from_openai(messages)
    for message in history:
        if message.role == "user" and message.text in compaction.summaries:
            message.metadata = {"summary": True}
    kept, summary = await compaction.strategy.compact(compaction.model, history, [])
    if summary is not None:
        compaction.summaries.add(summary.text)
    return await messages_to_openai(kept)
