"""
Words: languages by how they count
==================================

Any function that computes a similarity can be an oracle. Here it compares the words for one to
ten in sixteen languages, letter by letter; the map shows the families of languages.
"""

# %%
# The words, without accents.

from functools import cache

import numpy as np

import nearer

COUNTING = {
    "English": "one two three four five six seven eight nine ten",
    "German": "eins zwei drei vier funf sechs sieben acht neun zehn",
    "Dutch": "een twee drie vier vijf zes zeven acht negen tien",
    "Danish": "en to tre fire fem seks syv otte ni ti",
    "Swedish": "ett tva tre fyra fem sex sju atta nio tio",
    "Norwegian": "en to tre fire fem seks sju atte ni ti",
    "French": "un deux trois quatre cinq six sept huit neuf dix",
    "Spanish": "uno dos tres cuatro cinco seis siete ocho nueve diez",
    "Italian": "uno due tre quattro cinque sei sette otto nove dieci",
    "Portuguese": "um dois tres quatro cinco seis sete oito nove dez",
    "Catalan": "un dos tres quatre cinc sis set vuit nou deu",
    "Romanian": "unu doi trei patru cinci sase sapte opt noua zece",
    "Polish": "jeden dwa trzy cztery piec szesc siedem osiem dziewiec dziesiec",
    "Czech": "jeden dva tri ctyri pet sest sedm osm devet deset",
    "Slovak": "jeden dva tri styri pat sest sedem osem devat desat",
    "Croatian": "jedan dva tri cetiri pet sest sedam osam devet deset",
}
FAMILIES = ["Germanic"] * 6 + ["Romance"] * 6 + ["Slavic"] * 4


@cache
def edits(a, b):
    """How many letters must be changed, added or dropped to turn one word into the other."""
    if not a or not b:
        return len(a) + len(b)
    if a[0] == b[0]:
        return edits(a[1:], b[1:])
    return 1 + min(edits(a[1:], b), edits(a, b[1:]), edits(a[1:], b[1:]))


def alike(these, those):
    """How alike the languages of two lists are, one number a pair."""
    return [
        -np.mean([
            edits(a, b) / max(len(a), len(b))
            for a, b in zip(COUNTING[x].split(), COUNTING[y].split(), strict=True)
        ])
        for x, y in zip(these, those, strict=True)
    ]  # fmt: skip


# %%
# No plane has exactly these distances. `nearer.embed` asks, and `nearer.fit` finds the best map in
# the plane.

judge = nearer.judges.from_similarity(alike)
asked = nearer.embed(judge, list(COUNTING), random_state=0, progress=False)
embedding = nearer.fit(asked.triplets, n_components=2, objects="numbers", random_state=0)
share = embedding.predict(asked.triplets).mean()
print(f"{asked.n_comparisons} answers; a plane satisfies {share:.0%} of them")

# %%

nearer.plotting.plot_positions(embedding.positions, labels=list(COUNTING), colour=FAMILIES)
