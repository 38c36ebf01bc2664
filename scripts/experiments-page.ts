// Writes the results of examples/experiments into docs/reference/experiments.md and its figure, from what the command
// `espalier experiment` wrote: tsx scripts/experiments-page.ts. New results are copied into examples/experiments/results first.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { mean } from '../src/base/math/statistics.ts'
import type { ExperimentComparison, ExperimentResult } from '../src/learn/experiment/result.ts'

const place = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url))
const page = place('docs/reference/experiments.md')

const read = (name: string): ExperimentResult =>
  JSON.parse(readFileSync(place(`examples/experiments/results/${name}.json`), 'utf8'))

const signed = (value: number): string => `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(3)}`

const isClear = ({ adjusted }: ExperimentComparison): boolean => adjusted < 0.05

function tableOf(name: string): string {
  const { arms, cells, comparisons, seeds } = read(name)
  const meanOf = (arm: string, side: 'before' | 'after'): string =>
    mean(cells.filter(cell => cell.arm === arm).map(cell => cell[side])).toFixed(3)
  const rows = arms.map(({ name: arm }) => {
    const found = comparisons.find(each => each.arm === arm)
    if (!found) return `| ${arm} | ${meanOf(arm, 'after')} | | |`
    const { value, low, high } = found.difference
    const bounds = low === null || high === null ? '' : ` (${signed(low)} to ${signed(high)})`
    const difference = `${signed(value)}${bounds} against ${found.against}`
    const p = found.adjusted < 0.001 ? '< 0.001' : found.adjusted.toFixed(3)
    return `| ${arm} | ${meanOf(arm, 'after')} | ${isClear(found) ? `**${difference}**` : difference} | ${p} |`
  })
  const before = meanOf(arms[0]!.name, 'before')
  return [
    `\`${name}.toml\`, ${seeds.length} seeds, held-out success ${before} before:`,
    '',
    '| arm | after | difference (95 %) | p after Holm |',
    '|---|---|---|---|',
    ...rows,
  ].join('\n')
}

const named: string[] = []
const text = readFileSync(page, 'utf8').replace(
  /(<!-- results: ([\w ,-]+) -->\n)[\s\S]*?(<!-- end of results -->)/g,
  (_, begin: string, names: string, end: string) => {
    const all = names.split(' ')
    named.push(...all)
    return `${begin}\n${all.map(tableOf).join('\n\n')}\n\n${end}`
  },
)
writeFileSync(page, text)
writeFileSync(place('docs/images/experiments.svg'), figureOf(named))
console.log(`wrote ${named.length} results`)

/** Every difference with its bounds, experiment by experiment; it is light or dark as the reader's page is. */
function figureOf(names: readonly string[]): string {
  const [left, width, row] = [230, 460, 20]
  const most = 0.35
  const x = (value: number): string => {
    const within = Math.min(most, Math.max(-most, value))
    return (left + ((within + most) / (2 * most)) * width).toFixed(1)
  }
  let y = 30
  const parts: string[] = []
  for (const name of names) {
    parts.push(`<text class="name" x="8" y="${y + 14}">${name}</text>`)
    y += row
    for (const comparison of read(name).comparisons) {
      const { value, low, high } = comparison.difference
      const kind = isClear(comparison) ? 'clear' : 'open'
      const middle = y + row / 2
      parts.push(
        `<text x="${left - 12}" y="${middle + 4}" text-anchor="end">${comparison.arm} − ${comparison.against}</text>`,
        `<line class="${kind}" x1="${x(low ?? value)}" x2="${x(high ?? value)}" y1="${middle}" y2="${middle}"/>`,
        `<circle class="${kind}" cx="${x(value)}" cy="${middle}" r="4"/>`,
      )
      y += row
    }
    y += row / 2
  }
  const ticks = [-0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.3].map(
    value =>
      `<line class="${value === 0 ? 'zero' : 'tick'}" x1="${x(value)}" x2="${x(value)}" y1="24" y2="${y}"/>` +
      `<text x="${x(value)}" y="${y + 16}" text-anchor="middle">${value === 0 ? '0' : signed(value).slice(0, 4)}</text>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 ${y + 30}" font-family="system-ui, sans-serif" font-size="12">
<title>Differences of held-out success with 95 % bounds, paired by seed</title>
<style>
text { fill: #444 } .name { fill: #111; font-weight: 600 }
.tick { stroke: #ddd } .zero { stroke: #888 }
line.clear { stroke: #0b6bcb; stroke-width: 2 } circle.clear { fill: #0b6bcb }
line.open { stroke: #999; stroke-width: 2 } circle.open { fill: #999 }
@media (prefers-color-scheme: dark) {
  text { fill: #bbb } .name { fill: #eee } .tick { stroke: #333 } .zero { stroke: #777 }
  line.clear { stroke: #6cb6ff } circle.clear { fill: #6cb6ff } line.open { stroke: #777 } circle.open { fill: #777 }
}
</style>
${[...ticks, ...parts].join('\n')}
</svg>
`
}
