"""`truecal decision`: what miscalibration costs decisions at a threshold."""

import click

import truecal as tc
from truecal.cli.estimators import lens_option, level_option, make_lens, seed_option
from truecal.cli.output import Finding, Result, Share, answers, working
from truecal.cli.source import Source, input_options, load


@click.command()
@click.option(
    "--threshold",
    "thresholds",
    type=Share(0, 1, min_open=True, max_open=True),
    multiple=True,
    help="Score from which a case is acted on; repeat for several. Default: 0.01 to 0.99.",
)
@click.option(
    "--costs",
    type=(float, float),
    default=None,
    help="Costs of a false alarm and of a missed event, in place of --threshold.",
)
@level_option
@seed_option
@lens_option
@answers
@input_options
def decision(
    source: Source,
    thresholds: tuple[float, ...],
    costs: tuple[float, float] | None,
    level: float,
    seed: int,
    lens: str,
) -> Result:
    """Say what miscalibration costs who acts on the scores in FILE from --threshold on.

    A false alarm costs t and a missed event 1 - t, or what --costs says. Without a threshold: the largest loss of all of them.
    """
    preds = load(source)
    with working("redrawing outcomes"):
        loss = tc.decision_loss(preds, thresholds or None, costs, lens=make_lens(lens, preds), level=level, rng=seed)
    assert isinstance(loss, tc.inference.DecisionLoss)
    losses = [loss.at(t) for t in loss.thresholds] if thresholds or costs else [loss.maximum]
    findings = [
        Finding(
            f"{source.name} at {one.threshold:g}",
            str(one),
            {"threshold": one.threshold, "loss": one.value, "low": one.low, "high": one.high},
            labels={"source": source.name, "lens": loss.lens},
        )
        for one in losses
    ]
    return Result("decision", {"source": source.name, **loss.to_dict()}, str(loss), findings)
