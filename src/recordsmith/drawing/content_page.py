"""A page of a report: its figures, findings and tables, by a template of jinja2."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from recordsmith.drawing.html_page import paragraphs, text
from recordsmith.reports import Bar, Cell, Histogram, ReportContent, group_findings

_ROWS_SHOWN = 500
_FEATURES_SHOWN = 20  # with the same finding
_SHOWN_OF_KIND = 20
_LONGEST_CELL = 400

STYLE = """
.scroll { overflow-x: auto; margin: 6px 0 24px; }
th, td { padding: 6px 10px; }
td svg { display: block; }
svg rect { fill: var(--bar); }
"""

_TEMPLATE = """
<header><h1>{{ title | text }}</h1>
<p class="verdict {{ content.level }}">{{ content.verdict | text }}</p></header>
<p class="quiet">{{ content.summary | text }}</p>
<section class="cards">
{% for value, name in content.figures %}
<div class="card"><b>{{ value | text }}</b><span>{{ name | text }}</span></div>
{% endfor %}
</section>
{% if content.findings %}
<h2>Findings</h2>
<div class="kinds">
{% for group in groups %}
<article class="kind notice"><h3><code>{{ group.kind | text }}</code></h3>
{% if group.about %}<p class="quiet">{{ group.about | text }}</p>{% endif %}
<p>{{ group.text | prose }}</p>
{% if group.cure %}<p class="advice">{{ group.cure | prose }}</p>{% endif %}
{% for place in group.places %}<p class="quiet">{{ place | string | text }}</p>{% endfor %}
</article>
{% endfor %}
</div>
{% endif %}
{% for table in content.tables %}
{% if table.title %}<h2>{{ table.title | text }}</h2>{% endif %}
<div class="scroll"><table><thead><tr>
{% for head in table.heads %}
<th{% if head in table.numbers %} class="number"{% endif %}>{{ head | text }}</th>
{% endfor %}
</tr></thead><tbody>
{% for row in table.rows[:max_rows] %}
<tr>
{%- for cell in row -%}
<td{% if table.heads[loop.index0] in table.numbers %} class="number"{% endif %}>
{{- cell | cell -}}
</td>
{%- endfor -%}
</tr>
{% endfor %}
</tbody></table>
{% if table.rows | length > max_rows %}
<p class="quiet">and {{ table.rows | length - max_rows }} more, as <code>--json</code> has them</p>
{% endif %}
{% if table.note %}<p class="quiet">{{ table.note | prose }}</p>{% endif %}
</div>
{% endfor %}
{% for note in content.notes %}<p>{{ note | prose }}</p>{% endfor %}
"""


def content_page(content: ReportContent, title: str) -> str:
    """Return the body of the page of a report."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "text": lambda value: Markup(text(value)),  # noqa: S704 - escaped by `text`
        "prose": lambda value: Markup(paragraphs(value, 2000)),  # noqa: S704 - likewise
        "cell": _cell,
    }
    values: dict[str, Any] = {
        "content": content,
        "title": title,
        "groups": group_findings(content.findings, _FEATURES_SHOWN, _SHOWN_OF_KIND),
        "max_rows": _ROWS_SHOWN,
    }
    return environment.from_string(_TEMPLATE).render(values)


def _cell(cell: Cell) -> Markup:
    if isinstance(cell, Bar):
        bar = f'<rect width="{240 * cell.share:.1f}" height="12"/>'
        return Markup(f'<svg width="240" height="12">{bar}</svg>')  # noqa: S704 - of numbers
    if not isinstance(cell, Histogram):
        return Markup(text(cell, _LONGEST_CELL))  # noqa: S704 - escaped by `text`
    most, width = max(cell.counts, default=0) or 1, 160 / max(1, len(cell.counts))
    bars = ""
    for number, count in enumerate(cell.counts):
        height = max(1.0, 36 * count / most) if count else 0.0
        low, high = cell.edges[number], cell.edges[number + 1]
        bars += (
            f'<rect x="{number * width:.1f}" y="{36 - height:.1f}" width="{max(1, width - 1):.1f}" '
            f'height="{height:.1f}"><title>{low:.6g} to {high:.6g}: {count:,}</title></rect>'
        )
    return Markup(f'<svg width="160" height="36" role="img">{bars}</svg>')  # noqa: S704
