import type { Measured } from './arm.ts'
import { interval } from './table.ts'

const size = { width: 720, height: 400, left: 56, right: 170, top: 20, bottom: 44 }
const colours = ['#4363d8', '#e6194b', '#3cb44b', '#f58231', '#911eb4', '#808080']

interface Curve {
  readonly name: string
  readonly runs: readonly Measured[]
}

/** Mean reward over sampled tokens, one line per arm, with bars for the 95 % intervals over seeds. */
export function plotCurves(curves: readonly Curve[]): string {
  const drawn = curves.filter(({ runs }) => runs.length > 0)
  const most = Math.max(...drawn.flatMap(({ runs }) => runs.map(({ tokens }) => tokens)))
  const x = (tokens: number): number =>
    size.left + (tokens / most) * (size.width - size.left - size.right)
  const y = (reward: number): number =>
    size.height - size.bottom - reward * (size.height - size.top - size.bottom)
  const lines = drawn.map(({ name, runs }, index) =>
    drawLine({ name, runs }, { x, y, index, colour: colours[index % colours.length]! }),
  )
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" font-family="sans-serif" font-size="12">`,
    '<title>Reward on held-out tasks over sampled tokens learned from</title>',
    `<rect width="${size.width}" height="${size.height}" fill="#ffffff"/>`,
    ...drawAxes(most, x, y),
    ...lines,
    '</svg>',
    '',
  ].join('\n')
}

type Scale = (value: number) => number

function drawAxes(most: number, x: Scale, y: Scale): readonly string[] {
  const rewards = [0, 0.25, 0.5, 0.75, 1].map(
    reward =>
      `<line x1="${size.left}" x2="${size.width - size.right}" y1="${y(reward)}" y2="${y(reward)}" stroke="#dddddd"/>` +
      `<text x="${size.left - 8}" y="${y(reward) + 4}" text-anchor="end">${reward}</text>`,
  )
  const step = 10 ** Math.floor(Math.log10(most))
  const ticks = Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => index * step)
  const tokens = ticks.map(
    tick =>
      `<text x="${x(tick).toFixed(1)}" y="${size.height - size.bottom + 18}" text-anchor="middle">${tick / 1000}k</text>`,
  )
  const label = `<text x="${x(most / 2)}" y="${size.height - 8}" text-anchor="middle">sampled tokens learned from</text>`
  const title = `<text x="14" y="${y(0.5)}" transform="rotate(-90 14 ${y(0.5)})" text-anchor="middle">reward on held-out tasks</text>`
  return [...rewards, ...tokens, label, title]
}

function drawLine(
  { name, runs }: Curve,
  { x, y, index, colour }: { x: Scale; y: Scale; index: number; colour: string },
): string {
  const count = Math.min(...runs.map(({ curve }) => curve.length))
  const points = Array.from({ length: count }, (_, place) => ({
    tokens: interval(runs.map(({ curve }) => curve[place]!.tokens)).mean,
    ...interval(runs.map(({ curve }) => curve[place]!.reward)),
  }))
  const path = points.map(({ tokens, mean }) => `${round(x(tokens))},${round(y(mean))}`).join(' ')
  const bars = points.map(({ tokens, mean, reach }) => {
    if (!Number.isFinite(reach)) return ''
    const [low, high] = [Math.max(0, mean - reach), Math.min(1, mean + reach)]
    const at = round(x(tokens) + (index - 1.5) * 3)
    return `<line x1="${at}" x2="${at}" y1="${round(y(low))}" y2="${round(y(high))}" stroke="${colour}" stroke-opacity="0.5"/>`
  })
  const place = size.top + 12 + index * 18
  const legend =
    `<rect x="${size.width - size.right + 16}" y="${place - 8}" width="14" height="3" fill="${colour}"/>` +
    `<text x="${size.width - size.right + 36}" y="${place - 3}">${name}</text>`
  return [
    `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>`,
    ...bars,
    legend,
  ].join('\n')
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
