import type { CellResult } from './cell.ts'
import { type CurveAxis, type ExperimentCurve, experimentCurves } from './curves.ts'
import type { ExperimentComparison, ExperimentResult } from './result.ts'

/** One self-contained page of an experiment: the answer, the curves, the table. Light or dark as the reader wants it. */
export function experimentPage(
  result: ExperimentResult,
  { table, cells }: { readonly table: string; readonly cells: readonly CellResult[] },
): string {
  const charts = (['tokens', 'seconds'] as const).map(axis =>
    chart(experimentCurves(cells, axis), axis),
  )
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(result.question)}</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>${escaped(result.question)}</h1>
${result.comparisons.map(comparison => `<p class="answer">${escaped(answerOf(comparison))}</p>`).join('\n')}
${charts.join('\n')}
${tableHtml(table)}
</main>
</body>
</html>
`
}

/** One comparison in a sentence. */
export function answerOf({
  arm,
  against,
  metric,
  difference,
  adjusted,
  couldHaveSeen,
  pairs,
}: ExperimentComparison): string {
  const { value, low, high } = difference
  const size = `${Math.abs(value).toFixed(3)} ${value < 0 ? 'lower' : 'higher'}`
  const range =
    low === null || high === null
      ? 'no bounds yet'
      : `95 %: ${low.toFixed(3)} to ${high.toFixed(3)}`
  const measured = `${metric} of ${arm} is ${size} than of ${against} (${range}, ${pairs} seeds)`
  if (adjusted < 0.05) return `${value > 0 ? 'Better' : 'Worse'}: ${measured}.`
  const seen =
    couldHaveSeen === null
      ? 'more seeds are needed'
      : `this design could have seen ${couldHaveSeen.toFixed(3)}`
  return `Not settled: ${measured}; ${seen}.`
}

const style = `
:root{--ink:#1d1d1f;--soft:#6b6b70;--paper:#fff;--line:#d8d8dc;--a0:#1f6feb;--a1:#c2410c;--a2:#15803d;--a3:#7e22ce;--a4:#b45309;--a5:#0e7490;--a6:#be123c;--a7:#4d7c0f}
@media(prefers-color-scheme:dark){:root{--ink:#e8e8ea;--soft:#a0a0a8;--paper:#16161a;--line:#3a3a42;--a0:#79b0ff;--a1:#ff9d70;--a2:#6dd58c;--a3:#c79bff;--a4:#f0b45c;--a5:#67d3e8;--a6:#ff8fa3;--a7:#b6dd6a}}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.6rem;line-height:1.25;text-wrap:balance}
.answer{font-size:1.05rem;margin:.4rem 0}
figure{margin:2rem 0}figcaption{color:var(--soft);font-size:.9rem}
svg{width:100%;height:auto;display:block}
svg text{font-size:12px;fill:var(--soft)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.9rem;margin:1rem 0;min-width:100%}
th,td{text-align:left;padding:.35rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}
td{font-variant-numeric:tabular-nums}
li{margin:.3rem 0;color:var(--soft)}
`

const box = { width: 720, height: 300, left: 44, right: 120, top: 12, bottom: 34 }

function chart(curves: readonly ExperimentCurve[], axis: CurveAxis): string {
  const last = curves[0]?.points.at(-1)?.at
  if (last === undefined) return ''
  const { width, height, left, right, top, bottom } = box
  const x = (at: number) => left + ((width - left - right) * at) / last
  const y = (success: number) => top + (height - top - bottom) * (1 - success)
  const grid = [0, 0.25, 0.5, 0.75, 1].map(
    level =>
      `<line x1="${left}" x2="${width - right}" y1="${y(level)}" y2="${y(level)}" stroke="var(--line)"/><text x="${left - 6}" y="${y(level) + 4}" text-anchor="end">${level}</text>`,
  )
  const lines = curves.map(({ points }, index) => {
    const colour = `var(--a${index % 8})`
    const at = (value: 'mean' | 'low' | 'high') =>
      points.map(point => `${x(point.at).toFixed(1)},${y(point[value]).toFixed(1)}`)
    return `<polygon points="${[...at('low'), ...at('high').reverse()].join(' ')}" fill="${colour}" opacity=".14"/><polyline points="${at('mean').join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>`
  })
  const labels = labelPlaces(curves.map(({ points }) => y(points.at(-1)!.mean))).map(
    (place, index) =>
      `<text x="${width - right + 8}" y="${place + 4}" style="fill:var(--a${index % 8})">${escaped(curves[index]!.arm)}</text>`,
  )
  const unit = axis === 'tokens' ? 'sampled tokens learned from' : 'seconds of rolling and learning'
  return `<figure><svg viewBox="0 0 ${width} ${height}" role="img" aria-label="Success of training attempts over ${unit}">${grid.join('')}${lines.join('')}${labels.join('')}<text x="${left}" y="${height - 8}">0</text><text x="${width - right}" y="${height - 8}" text-anchor="end">${Math.round(last).toLocaleString('en-US')} ${axis}</text></svg><figcaption>Success of training attempts over ${unit}, mean over seeds with 95 % bounds, as far as every cell has come.</figcaption></figure>`
}

/** Places for labels beside the ends of lines, so that none covers another. */
function labelPlaces(wanted: readonly number[]): readonly number[] {
  const order = wanted.map((_, index) => index).sort((a, b) => wanted[a]! - wanted[b]!)
  const places = [...wanted]
  let free = 0
  for (const index of order) {
    places[index] = Math.max(wanted[index]!, free)
    free = places[index]! + 15
  }
  return places
}

/** The tables and notes of the Markdown, as HTML. */
function tableHtml(markdown: string): string {
  const blocks = markdown.split('\n\n').slice(1)
  return blocks
    .map(block =>
      block.startsWith('|')
        ? rowsHtml(block)
        : block.startsWith('- ')
          ? listHtml(block)
          : `<p>${escaped(block.trim())}</p>`,
    )
    .join('\n')
}

function rowsHtml(block: string): string {
  const [head = '', , ...rows] = block.split('\n').filter(line => line !== '')
  const cells = (line: string, tag: string) =>
    line
      .replace(/^\| | \|$/g, '')
      .split(' | ')
      .map(cell => `<${tag}>${emphasised(cell)}</${tag}>`)
      .join('')
  return `<div class="scroll"><table><thead><tr>${cells(head, 'th')}</tr></thead><tbody>${rows.map(row => `<tr>${cells(row, 'td')}</tr>`).join('')}</tbody></table></div>`
}

function listHtml(block: string): string {
  const items = block.split('\n').filter(line => line.startsWith('- '))
  return `<ul>${items.map(item => `<li>${escaped(item.slice(2))}</li>`).join('')}</ul>`
}

const emphasised = (cell: string): string =>
  escaped(cell.replaceAll('\\|', '|')).replace(/\*\*(.+?)\*\*/g, '<strong>$1</strong>')

function escaped(text: string): string {
  const signs: Readonly<Record<string, string>> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
  }
  return text.replace(/[&<>"]/g, sign => signs[sign]!)
}
