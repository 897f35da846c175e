"""The list of sentences that users can see."""

from tools.messages import ROOT, python_messages, template_messages


def test_messages_lists_errors_warnings_help_and_text(tmp_path, monkeypatch):
    monkeypatch.setattr("tools.messages.ROOT", tmp_path)
    source = tmp_path / "module.py"
    source.write_text(
        '"""A documentation string that users do not see."""\n'
        'raise InputError(f"row {row} has no label at all")\n'
        'warnings.warn("few rows were read", UserWarning)\n'
        'option(help="Level.")\n'
        'title = "How the scores were read"\n'
        'key = "a_name"\n'
    )
    listed = [(kind, text) for _, _, kind, text in sorted(python_messages(source), key=lambda message: message[1])]
    assert listed == [
        ("raise", "row {row} has no label at all"),
        ("warn", "few rows were read"),
        ("help", "Level."),
        ("text", "How the scores were read"),
    ]


def test_messages_of_templates_are_their_text(tmp_path, monkeypatch):
    monkeypatch.setattr("tools.messages.ROOT", tmp_path)
    page = tmp_path / "page.html"
    page.write_text("<p class='note'>No row was dropped: {{ n }} rows</p>\n{% if a %}<b>{{ x }}</b>{% endif %}\n")
    assert [text for *_, text in template_messages(page)] == ["No row was dropped: {{ n }} rows"]
    assert ROOT.is_dir()
