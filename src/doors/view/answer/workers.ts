import type { WorkerRow } from '../answers.ts'

/** The workers of a cluster, from the events of a run. */
export interface Crew {
  /** How many reports there were. */
  readonly reports: number
  /** Reads the workers in an event or a report. */
  hear(event: Readonly<Record<string, unknown>>): void
  /** The workers in events, or, for a short run, in its report. */
  rows(report: unknown): readonly WorkerRow[]
}

/** Opens the workers of a run; those that are missing from later reports are shown as gone. */
export function makeCrew(): Crew {
  const known = new Map<string, WorkerRow>()
  let reports = 0
  return {
    get reports() {
      return reports
    },
    hear({ workers, time }) {
      if (!Array.isArray(workers)) return
      reports++
      for (const [id, row] of known) known.set(id, { ...row, isGone: true })
      for (const worker of workers) {
        const row = rowOf(worker, typeof time === 'string' ? time : undefined)
        if (row) known.set(row.id, row)
      }
    },
    rows(report) {
      const rows = known.size > 0 ? [...known.values()] : reported(report)
      return rows.toSorted((a, b) => Number(a.isGone) - Number(b.isGone))
    },
  }
}

function reported(report: unknown): readonly WorkerRow[] {
  const { workers } = (report ?? {}) as { readonly workers?: unknown }
  if (!Array.isArray(workers)) return []
  return workers.map(worker => rowOf(worker, undefined)).filter(row => row !== undefined)
}

/** What is shown of a worker; a file may hold anything. */
function rowOf(worker: unknown, time: string | undefined): WorkerRow | undefined {
  if (typeof worker !== 'object' || worker === null) return undefined
  const fields = worker as Readonly<Record<string, unknown>>
  if (typeof fields.id !== 'string') return undefined
  const number = (name: string): number => {
    const value = fields[name]
    return typeof value === 'number' && Number.isFinite(value) ? value : 0
  }
  const seconds = Math.max(number('seconds'), 1e-3)
  return {
    id: fields.id,
    name: `${String(fields.host)}:${number('process')}`,
    running: number('running'),
    concurrency: number('concurrency'),
    done: number('done'),
    refused: number('refused'),
    perMinute: (60 * number('done')) / seconds,
    tokensPerSecond: number('sampled') / seconds,
    silent: number('silent'),
    ...(time !== undefined && { time }),
    isLeaving: fields.leaving === true,
    isGone: false,
    ...(typeof fields.refusal === 'string' && { refusal: fields.refusal }),
  }
}
