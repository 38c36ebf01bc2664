import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import type { Chart as ChartAnswer } from '../../src/doors/view/answers.ts'
import { formatCount, formatNumber, formatShare } from '../data/format.ts'
import { colour } from './theme.tsx'

const height = 132

const forms = {
  share: formatShare,
  number: formatNumber,
  count: formatCount,
} as const

/** Steps and groups are counted in whole numbers. */
const wholeSteps = [1, 2, 5]
  .flatMap(each => [0, 1, 2, 3, 4, 5, 6].map(power => each * 10 ** power))
  .sort((a, b) => a - b)

const dashes = [[], [6, 3], [2, 3], [8, 3, 2, 3], [1, 2], [10, 4]]

/** A chart of one number, or of a few that belong together, drawn small. */
export function Chart({ chart, axis }: { chart: ChartAnswer; axis: string }) {
  const place = useRef<HTMLDivElement>(null)
  const format = forms[chart.form]
  const last = chart.series[0]?.values.findLast(value => value !== null) ?? null
  useEffect(() => {
    const element = place.current
    if (!element) return
    let plot: uPlot | undefined
    const draw = (): void => {
      plot?.destroy()
      plot = new uPlot(optionsOf(chart, element.clientWidth, axis), dataOf(chart), element)
    }
    draw()
    const resized = new ResizeObserver(() => plot?.setSize({ width: element.clientWidth, height }))
    resized.observe(element)
    addEventListener('themechange', draw)
    return () => {
      removeEventListener('themechange', draw)
      resized.disconnect()
      plot?.destroy()
    }
  }, [chart, axis])
  const isSingle = chart.series.length === 1
  return (
    <figure class="chart" title={chart.about}>
      <figcaption>
        <span>{chart.title}</span>
        {isSingle && <b>{format(last)}</b>}
      </figcaption>
      <div ref={place} role="img" aria-label={summaryOf(chart, axis)} />
      {!isSingle && <Legend chart={chart} />}
      <p class="about">{chart.about}</p>
    </figure>
  )
}

function Legend({ chart }: { chart: ChartAnswer }) {
  return (
    <ul class="legend">
      {chart.series.map(({ name, values }, index) => (
        <li key={name}>
          <svg width="20" height="8" aria-hidden="true">
            <line
              x1="0"
              x2="20"
              y1="4"
              y2="4"
              stroke="currentColor"
              stroke-width="1.5"
              stroke-dasharray={dashes[index % dashes.length]!.join(' ')}
            />
          </svg>
          <span title={name}>{name}</span>
          <b>{formatCount(values.reduce<number>((sum, value) => sum + (value ?? 0), 0))}</b>
        </li>
      ))}
    </ul>
  )
}

/** The chart in words, for screen readers. */
function summaryOf({ title, series, x, form, about }: ChartAnswer, axis: string): string {
  const format = forms[form]
  const lines = series.map(({ name, values }) => {
    const known = values.flatMap((value, index) => (value === null ? [] : { value, at: x[index]! }))
    const [first, last] = [known[0], known.at(-1)]
    if (!first || !last) return `${name}: nothing`
    const all = known.map(({ value }) => value)
    return (
      `${name}: ${format(first.value)} at ${axis} ${first.at}, ${format(last.value)} at ${axis} ${last.at}, ` +
      `lowest ${format(Math.min(...all))}, highest ${format(Math.max(...all))}`
    )
  })
  return `${title}. ${about} ${lines.join('. ')}`
}

function dataOf({ x, series }: ChartAnswer): uPlot.AlignedData {
  return [[...x], ...series.map(({ values }) => [...values])]
}

function optionsOf(chart: ChartAnswer, width: number, axis: string): uPlot.Options {
  const format = forms[chart.form]
  const [line, ink, accent] = [colour('line'), colour('muted'), colour('accent')]
  const font = '11px "Inter Variable", system-ui, sans-serif'
  const plain = { stroke: ink, font, ticks: { show: false }, gap: 6 }
  return {
    width,
    height,
    // Half of the last label stands behind the end of its axis.
    padding: [8, 22, 0, 0],
    legend: { show: false },
    cursor: { points: { size: 6 }, y: false, sync: { key: 'run' }, drag: { x: false, y: false } },
    scales: { x: { time: false }, y: { range: (_, low, high) => rangeOf(chart, low, high) } },
    axes: [
      { ...plain, grid: { show: false }, size: 22, space: 60, incrs: wholeSteps },
      {
        ...plain,
        size: 52,
        space: 36,
        grid: { stroke: line, width: 1 },
        values: (_, splits) => splits.map(value => shortOf(chart.form, value)),
      },
    ],
    series: [
      { label: axis },
      ...chart.series.map(({ name, values }, index) => ({
        label: name,
        stroke: accent,
        width: 1.6,
        dash: dashes[index % dashes.length]!,
        spanGaps: true,
        points: { show: values.length < 3, size: 5, fill: accent },
      })),
    ],
    plugins: [hover(format, axis)],
  }
}

/** Labels of an axis, with as few digits as keep them distinct. */
function shortOf(form: ChartAnswer['form'], value: number): string {
  if (form === 'share') return `${Math.round(value * 100)} %`
  if (Math.abs(value) >= 10_000) return `${Math.round(value / 1000)} k`
  return Number(value.toPrecision(3)).toString().replace('-', '−').replace(/e-/, 'e−')
}

/** Shares are drawn from 0 to 1; other values in their own range with a margin. */
function rangeOf({ form }: ChartAnswer, low: number, high: number): [number, number] {
  if (form === 'share') return [0, 1]
  if (form === 'count') return [0, Math.max(1, high)]
  const air = (high - low || Math.abs(high) || 1) * 0.08
  return [low >= 0 && low - air < 0 ? 0 : low - air, high + air]
}

/** Shows the number under the pointer. */
function hover(format: (value: number | null) => string, axis: string): uPlot.Plugin {
  let tip: HTMLElement | undefined
  return {
    hooks: {
      init(plot) {
        tip = document.createElement('div')
        tip.className = 'tip'
        plot.over.append(tip)
      },
      setCursor(plot) {
        const { idx, left } = plot.cursor
        if (!tip) return
        tip.hidden = idx === null || idx === undefined || (left ?? -1) < 0
        if (tip.hidden) return
        const values = plot.series
          .slice(1)
          .map((_, index) => format(plot.data[index + 1]![idx!] ?? null))
        tip.textContent = `${axis} ${plot.data[0][idx!]}: ${values.join(' · ')}`
        const isRight = (left ?? 0) > plot.over.clientWidth / 2
        tip.style.transform = `translateX(${isRight ? `calc(${left}px - 100% - 8px)` : `${(left ?? 0) + 8}px`})`
      },
    },
  }
}
