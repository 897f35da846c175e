"""`truecal likert`: may these words for confidence be shown to people?"""

import click

import truecal as tc
from truecal.cli.answer.output import Reply, draw, reply_options, working
from truecal.cli.context.words import classes_by_word, scale_of
from truecal.cli.estimators import level_option, seed_option
from truecal.cli.source import Source, input_options, load
from truecal.errors import InputError


@click.command()
@click.option(
    "--scale",
    metavar="WORD=LOW:HIGH,...",
    help="Your words and their limits, e.g. 'unsure=0:0.6,sure=0.6:1'.  [default: low=0:0.33,medium=0.33:0.66,high=0.66:1]",
)
@click.option(
    "--of", "shown", metavar="CLASS", help="The class whose probability is shown; default: the predicted one."
)
@click.option("--figure", metavar="FILE", type=click.Path(), help="Also draw it (png, svg, pdf).")
@level_option
@seed_option
@reply_options
@input_options
def likert(
    source: Source,
    scale: str | None,
    shown: str | None,
    figure: str | None,
    level: float,
    seed: int,
    reply: Reply,
) -> int:
    """Judge the outputs in FILE as people see them: as words of a scale.

    A word is kept when, among the outputs it covers, the event happens with a frequency inside the word's own limits.

    Exit 0 if no word is broken, 1 if one is (its frequency lies outside its limits, at --level), 2 if the input cannot be used.
    """
    from truecal import breakdown

    preds = load(source)
    known = classes_by_word(preds)
    if shown is not None and shown not in known:
        raise InputError(f"there is no class {shown!r} for --of; the classes are {', '.join(list(known)[:10])}")
    words = scale_of(scale, "--scale") or breakdown.SCALE
    with working("judging words"):
        answers = tc.likert(preds, words, of=None if shown is None else known[shown], level=level, rng=seed)
    if figure is not None:
        draw(tc.plot.LikertDisplay.from_report(answers).figure_, figure)
    outside = f"\n{answers.outside} outputs are covered by no word" if answers.outside else ""
    content = {"source": source.name, "level": level, "outside": answers.outside, "categories": list(answers.frame())}
    reply.give("likert", f"{answers}{outside}", **content)
    return 1 if any(category.kept is False for category in answers.categories) else 0
