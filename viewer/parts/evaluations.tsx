import type { EvaluationPoint } from '../../src/doors/view/answers.ts'
import { formatCount, formatShare } from '../data/format.ts'
import { hrefTo } from '../data/route.ts'

/** Success on held-out tasks before and after, and at every step between, with intervals. */
export function Evaluations({ points, run }: { points: readonly EvaluationPoint[]; run: string }) {
  const [before, after] = [points[0], points.at(-1)]
  if (!before || !after) return null
  const isOne = points.length === 1
  return (
    <section class="evaluation" aria-label="Success on held-out tasks">
      <h2 class="section">
        Held-out success{' '}
        <small>{formatCount(after.scored)} tasks the policy never learned from</small>
      </h2>
      <div class="change">
        <Level point={before} label={isOne ? `at step ${before.step}` : 'before'} />
        {!isOne && (
          <>
            <span class="arrow" aria-hidden="true">
              →
            </span>
            <Level point={after} label={`after step ${after.step}`} tone={toneOf(before, after)} />
          </>
        )}
        <Ladder points={points} />
      </div>
      {!isOne && (
        <p>
          <a
            href={hrefTo(['compare'], {
              before: run,
              'before-step': before.step,
              after: run,
              'after-step': after.step,
            })}
          >
            Task by task
          </a>
        </p>
      )}
    </section>
  )
}

type Tone = 'risen' | 'fallen' | 'even'

/** Whether success has risen or fallen by more than chance does. */
function toneOf(before: EvaluationPoint, { success }: EvaluationPoint): Tone {
  if (success > before.high) return 'risen'
  return success < before.low ? 'fallen' : 'even'
}

function Level({
  point,
  label,
  tone = 'even',
}: {
  point: EvaluationPoint
  label: string
  tone?: Tone
}) {
  return (
    <div class={`level ${tone}`}>
      <b>{formatShare(point.success)}</b>
      <small>
        {label}, 95 % between {formatShare(point.low)} and {formatShare(point.high)}
      </small>
    </div>
  )
}

/** Intervals of all evaluations above one axis from 0 to 1. */
function Ladder({ points }: { points: readonly EvaluationPoint[] }) {
  const shown =
    points.length > 12
      ? points.filter(
          (_, index) => index % Math.ceil(points.length / 12) === 0 || index === points.length - 1,
        )
      : points
  const row = 18
  const height = shown.length * row + 20
  const x = (share: number): number => 60 + share * 320
  return (
    <svg
      class="ladder"
      viewBox={`0 0 400 ${height}`}
      role="img"
      aria-label={`Intervals of ${points.length} evaluations from 0 to 100 percent`}
    >
      {[0, 0.25, 0.5, 0.75, 1].map(share => (
        <g key={share}>
          <line x1={x(share)} x2={x(share)} y1="0" y2={height - 18} class="grid" />
          <text x={x(share)} y={height - 4} text-anchor="middle">
            {share * 100} %
          </text>
        </g>
      ))}
      {shown.map(({ step, low, high, success }, index) => {
        const y = index * row + 10
        return (
          <g key={step}>
            <text x="48" y={y + 4} text-anchor="end">
              step {step}
            </text>
            <line x1={x(low)} x2={x(high)} y1={y} y2={y} class="range" />
            <circle
              cx={x(success)}
              cy={y}
              r="4"
              class={index === shown.length - 1 ? 'dot strong' : 'dot'}
            />
          </g>
        )
      })}
    </svg>
  )
}
