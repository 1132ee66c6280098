"""summary.md in German: through the night, a resume, and a replay."""

import re


def summary(shop):
    return (shop.queue_folder() / "summary.md").read_text()


def test_a_night_keeps_its_language_and_can_be_rewritten_in_the_other(workshop):
    shop = workshop
    shop.commands(["a", "b"], {"work": "if model == 'b' and os.path.exists('broken'): sys.exit(1)\ndone()"})
    shop.write("broken", "")
    assert shop.night("--lang", "de").returncode == 1
    first = summary(shop)
    assert first.startswith("# Nacht-Queue Summary\n\n**Start:** ")
    assert " · **Einträge:** 2 · **Fertig:** 2\n" in first
    assert re.search(r"^\| 0 \| a \| ok \| skipped \| 0 \| 0 \| `runs/.*_e0_a_eval_nopack` \|$", first, re.MULTILINE)
    assert first.endswith("\n## Fehler\n\n- **b** (#1): work failed\n")
    (shop.folder / "broken").unlink()
    assert shop.night("--resume").returncode == 0
    resumed = summary(shop)
    assert resumed.startswith("# Nacht-Queue Summary\n") and "## Fehler" not in resumed
    assert shop.runq("replay", "--lang", "en").returncode == 0
    assert summary(shop).startswith("# Night queue summary\n")
    assert shop.runq("replay").returncode == 0
    assert summary(shop) == resumed
    refused = shop.runq("replay", "--lang", "fr")
    assert refused.returncode == 2 and "'en', 'de'" in refused.stderr


def test_english_is_the_default(workshop):
    shop = workshop
    shop.commands(["a"], {"work": "done()"})
    assert shop.night().returncode == 0
    assert summary(shop).startswith("# Night queue summary\n")
