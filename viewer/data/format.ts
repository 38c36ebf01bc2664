import { describeOutcome, type Outcome } from '../../src/base/core/outcome.ts'

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const missing = '–'

/** 12,345 */
export function formatCount(value: number | null | undefined): string {
  return value === null || value === undefined ? missing : whole.format(value)
}

/** 12.3 k, 4.6 M: for figures that are read at a glance. */
export function formatShort(value: number): string {
  if (Math.abs(value) >= 1e6) return `${trim(value / 1e6)} M`
  return Math.abs(value) >= 1e4 ? `${trim(value / 1e3)} k` : whole.format(value)
}

function trim(value: number): string {
  return value.toFixed(Math.abs(value) >= 100 ? 0 : 1)
}

/** Three significant digits; very small numbers with an exponent. */
export function formatNumber(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return missing
  if (value === 0) return '0'
  const size = Math.abs(value)
  if (size < 1e-3) return value.toExponential(1).replace('e-', 'e−').replace(/^-/, '−')
  if (size >= 1000) return whole.format(value)
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : 3
  return minus(Number(value.toFixed(digits)).toString())
}

/** With a fixed number of decimals, so that numbers line up in a column. */
export function formatFixed(value: number | null | undefined, digits = 2): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return missing
  return minus(value.toFixed(digits))
}

export function formatSigned(value: number | null | undefined, digits = 2): string {
  if (value === null || value === undefined) return missing
  const text = formatFixed(value, digits)
  if (Number(text.replace('−', '-')) === 0) return text.replace('−', '')
  return `${value > 0 ? '+' : ''}${text}`
}

/** 68.6 % */
export function formatShare(value: number | null | undefined): string {
  return value === null || value === undefined ? missing : `${(value * 100).toFixed(1)} %`
}

export function formatSeconds(value: number): string {
  if (value < 1e-3) return value === 0 ? '0 s' : `${(value * 1e6).toFixed(0)} µs`
  if (value < 1) return `${(value * 1000).toFixed(value < 0.01 ? 1 : 0)} ms`
  if (value < 120) return `${value.toFixed(value < 10 ? 1 : 0)} s`
  if (value < 7200) return `${(value / 60).toFixed(0)} min`
  return `${(value / 3600).toFixed(1)} h`
}

/** A probability from its logarithm. */
export function formatProbability(logprob: number | null): string {
  if (logprob === null) return missing
  const p = Math.exp(logprob)
  return p >= 0.0995
    ? `${(p * 100).toFixed(1)} %`
    : p >= 1e-4
      ? `${(p * 100).toPrecision(2)} %`
      : p.toExponential(1)
}

function minus(text: string): string {
  return text.replace('-', '−')
}

/** A policy without the folder it lies in. */
export function formatPolicy(policy: string): string {
  const checkpoint = /checkpoints[\\/]0*(\d+)$/.exec(policy)
  if (checkpoint) return `checkpoint of step ${checkpoint[1]}`
  return policy.replace(/^(embedded):.*[\\/]([^\\/]+)$/, '$1:$2')
}

export function formatDate(text: string | undefined): string {
  if (text === undefined) return missing
  const date = new Date(text)
  return Number.isNaN(date.getTime())
    ? text
    : date.toLocaleString('en', { dateStyle: 'medium', timeStyle: 'short' })
}

/** An outcome without the message of its failure, which stands elsewhere. */
export function formatOutcome(outcome: Outcome): string {
  return outcome.kind === 'failed' ? `failed in ${outcome.boundary}` : describeOutcome(outcome)
}

/** Indented JSON for people; text that is not JSON stays as it is. */
export function formatJson(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? 'undefined'
}

export function formatArguments(text: string): string {
  try {
    return formatJson(JSON.parse(text))
  } catch {
    return text
  }
}
