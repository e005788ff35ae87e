"""What of the settings works, but hardly as it was meant: sentences that are shown when Nexus starts."""

from collections.abc import Mapping
from decimal import Decimal

from composer.settings.billing import ADD_BILLING, BILLING_SECRETS
from composer.settings.costs import BudgetSettings
from composer.settings.gateway import gateway_key_variable
from composer.settings.installation import KNOWN_VARIABLES, Settings
from composer.settings.refusals import nearest_hint
from composer.settings.tool_servers import token_variable

SHORT_PROMPT_TOKENS = 300  # about what the rules (215), a short persona, CONTEXT and a short question have


def warnings_of(settings: Settings, variables: Mapping[str, str]) -> tuple[str, ...]:
    """What to say of these settings; `variables` are Nexus's own."""
    return (
        *_unknown_variables(variables, settings),
        *_model_warnings(settings),
        *_budget_warnings(settings),
        *_server_warnings(settings),
        *_billing_warnings(settings),
    )


def _unknown_variables(variables: Mapping[str, str], settings: Settings) -> list[str]:
    known = (*KNOWN_VARIABLES, *map(token_variable, settings.mcp), *map(gateway_key_variable, settings.tenants))
    unknown = [key for key in sorted(variables) if key not in known]
    return [f"{key} is not a setting of Nexus{nearest_hint(key, known) or '.'}" for key in unknown]


def _model_warnings(settings: Settings) -> list[str]:
    if settings.has_model_api:
        if any(agent.model is None for agent in settings.agents) and settings.model is None:
            return ["A model API is set but no model is named, so answers are made offline: set NEXUS_MODEL."]
        return []
    return [no_model_api_sentence(model) for model in settings.named_models][:1]


def no_model_api_sentence(model: str) -> str:
    """What to do about a model without a server."""
    return (
        f"The model {model} is named but no model API is set, so answers are made offline: set NEXUS_OPENAI_BASE_URL "
        "or NEXUS_OPENAI_API_KEY."
    )


def _server_warnings(settings: Settings) -> list[str]:
    slugs = {agent.slug for agent in settings.agents}
    known = ", ".join(sorted(slugs))
    return [
        f"The MCP server {name} is set for the agent {agent}, which there is not: set one of {known}."
        for name, server in settings.mcp.items()
        for agent in server.agents
        if agent not in slugs
    ]


def _billing_warnings(settings: Settings) -> list[str]:
    if settings.billing is not None or all(getattr(settings, name) is None for name in BILLING_SECRETS):
        return []
    return [f"A key of Stripe is set, but billing is off: {ADD_BILLING}"]


def _budget_warnings(settings: Settings) -> list[str]:
    slugs = {agent.slug for agent in settings.agents}
    found = [
        f"A budget is set for the agent {budget.agent}, which there is not: set one of {', '.join(sorted(slugs))}."
        for budget in settings.budgets
        if budget.agent is not None and budget.agent not in slugs
    ]
    unpriced = [name for name in settings.metered_models if name not in settings.prices]
    if unpriced and any(budget.money is not None for budget in settings.budgets):
        tables = ", ".join(f'[prices."{name}"]' for name in unpriced)
        found.append(
            f"A budget is set in money, but no price for {', '.join(unpriced)}: "
            f"{'it is' if len(unpriced) == 1 else 'they are'} not asked for what that budget is for. Set {tables} in "
            "nexus.toml."
        )
    return found + [
        _too_small_sentence(budget, settings) for budget in settings.budgets if _too_small(budget, settings)
    ]


def _answering(budget: BudgetSettings, settings: Settings) -> list[tuple[int, Decimal]]:
    """The tokens and the money that one longest answer to a short question may use, of each agent whose answers the
    budget counts. The money of a model without a price is 0."""
    found = []
    for agent in settings.agents if settings.has_model_api and budget.kind in (None, "answers") else ():
        model = agent.model or settings.model
        if model is None or budget.agent not in (None, agent.slug):
            continue
        price = settings.prices.get(model)
        money = Decimal(0)
        if price is not None:
            money = (SHORT_PROMPT_TOKENS * price.input + agent.reply_tokens * price.output) / 1_000_000
        found.append((SHORT_PROMPT_TOKENS + agent.reply_tokens, money))
    return found


def _too_small(budget: BudgetSettings, settings: Settings) -> bool:
    """Whether no answer that the budget counts fits into it, even if nothing of it is used."""
    answers = _answering(budget, settings)
    return bool(answers) and all(
        (budget.tokens is not None and tokens > budget.tokens) or (budget.money is not None and money > budget.money)
        for tokens, money in answers
    )


def _too_small_sentence(budget: BudgetSettings, settings: Settings) -> str:
    tokens, money = min(_answering(budget, settings))
    limits = [f"{budget.tokens:,} tokens"] if budget.tokens is not None else []
    limits += [f"{budget.money.normalize():f} {settings.currency}"] if budget.money is not None else []
    needs = f"{tokens:,} tokens" + (f", {money.normalize():f} {settings.currency}" if budget.money is not None else "")
    return (
        f"No single answer fits into the budget of {' and '.join(limits)} a {budget.per}: even a short question may "
        f"use about {needs}, so each is refused. Raise the budget, or lower the agent's reply_tokens, in nexus.toml."
    )
