import type { Json } from '../../../base/core/ids.ts'
import type { Warning } from '../answers.ts'
import { isRecord } from '../run-files.ts'

/** The warnings of a run, as its events tell them one after the other. */
export interface Warnings {
  readonly count: number
  hear(event: Readonly<Record<string, unknown>>): void
  /** Warnings from events, and those that only the report has. */
  all(report: Json): readonly Warning[]
}

/** Begins without a warning. */
export function makeWarnings(): Warnings {
  const told: Warning[] = []
  return {
    get count() {
      return told.length
    },
    hear(event) {
      const { kind, server, seconds } = event
      if (kind === 'warning') told.push(warningOf(event))
      else if (kind === 'server-back') noteBack(told, String(server), Number(seconds))
    },
    all(report) {
      const kept = isRecord(report) && Array.isArray(report.warnings) ? report.warnings : []
      const known = new Set(told.map(({ sentinel }) => sentinel))
      const more = kept.filter(isRecord).map(warningOf)
      return [...told, ...more.filter(({ sentinel }) => !known.has(sentinel))]
    },
  }
}

function warningOf({
  sentinel,
  message,
  likely,
  time,
}: Readonly<Record<string, unknown>>): Warning {
  const words = { sentinel: String(sentinel), message: String(message), likely: String(likely) }
  return typeof time === 'string' ? { ...words, time } : words
}

/** The warning that a server is away becomes one that it was. */
function noteBack(told: Warning[], server: string, seconds: number): void {
  const at = told.findLastIndex(
    ({ sentinel, message }) =>
      sentinel === 'server-away' && message.startsWith(`${server} is away`),
  )
  const warning = told[at]
  if (!warning) return
  const message = `${server} was away for ${Math.round(seconds)} s`
  told[at] = { ...warning, message }
}
