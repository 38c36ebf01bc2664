import { bytes, count, duration } from '../base/core/names/units.ts'
import { flagOf } from '../run/settings/settings.ts'
import type { Forecast, Plan } from './plan.ts'

/** A plan for people: what would happen, what it is based on, and where each setting came from. */
export function planLines(plan: Plan): readonly string[] {
  const { perAttempt: per } = plan
  const changed = plan.settings.filter(
    ({ value, from }) => value !== undefined && from !== 'default',
  )
  const defaults = plan.settings.filter(
    ({ value, from }) => value !== undefined && from === 'default',
  )
  const width = Math.max(0, ...changed.map(({ name }) => flagOf(name).length))
  return [
    `${plan.kind} into ${plan.out}: ${count(plan.tasks)} tasks, ${count(plan.attempts)} attempts`,
    `  requests         ${forecast(plan.requests, count)}`,
    `  sampled tokens   ${forecast(plan.sampledTokens, count)}`,
    `  prompt tokens    ${forecast(plan.promptTokens, count)}`,
    `  time             about ${duration(plan.seconds)}`,
    `  disk             ${forecast(plan.bytes, bytes)}`,
    ...(plan.money
      ? [`  money            ${forecast(plan.money, value => value.toFixed(2))}`]
      : []),
    ...(plan.budget ? [`  ${plan.budget}`] : []),
    `  an attempt       ${per.turns.toFixed(1)} turns, ${count(per.sampled)} sampled and ${count(per.prompt)} prompt tokens; from ${per.from}`,
    'settings',
    ...changed.map(
      ({ name, value, from }) => `  ${flagOf(name).padEnd(width)}  ${show(value)}  (${from})`,
    ),
    `  by default: ${defaults.map(({ name, value }) => `${flagOf(name)} ${show(value)}`).join(', ')}`,
  ]
}

function forecast({ expected, most }: Forecast, format: (value: number) => string): string {
  return `about ${format(expected)}, at most ${format(most)}`
}

function show(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
