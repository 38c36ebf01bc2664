import { parsePartName } from '../core/part-name.ts'
import { advantageNamed } from '../math/registry.ts'
import type { Estimate } from './gather.ts'

/** The comparison within a group that a name stands for: `grpo`, `rloo`, `grpo:scale=none`. */
export function openEstimate(text: string): Estimate {
  const { name, options } = parsePartName(text)
  const estimator = advantageNamed(name)
  if (estimator.kind !== 'trajectory') {
    throw new Error(
      `advantage "${name}" is computed from ${estimator.kind}s, not from one reward per trajectory`,
    )
  }
  const given = Object.fromEntries([...options].map(([key, value]) => [key, toValue(value)]))
  return entries => estimator.compute(entries, given)
}

function toValue(text: string): unknown {
  const number = Number(text)
  return text.trim() !== '' && Number.isFinite(number) ? number : text
}
